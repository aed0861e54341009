"""`idstack probe` and `idstack local`: other commands of this project, in the environment of a stack."""

from __future__ import annotations

import subprocess
import sys

import typer

from ops import local_cloud
from ops.environment import variables
from ops.options import DEFAULT_STACK, StackOption


def probe(context: typer.Context, stack: StackOption = DEFAULT_STACK) -> None:
    """Prove a mounted credential (`--credential`, `--proof`, `--once`): hands over to identity.credentials.probe."""
    command = [sys.executable, "-m", "identity.credentials.probe", *context.args]
    raise typer.Exit(subprocess.run(command, env=variables(stack)).returncode)


def local(context: typer.Context) -> None:
    """Run a command of the local cloud: start, stop, env, seed, issue-msi, recover."""
    raise typer.Exit(local_cloud.run(context.args))
