"""`idstack probe`: one credential probe (`identity.credentials.probe`), in the environment of a stack."""

from __future__ import annotations

import subprocess
import sys

import typer

from ops.commands.options import DEFAULT_STACK, StackOption
from ops.stack.environment import variables


def probe(context: typer.Context, stack: StackOption = DEFAULT_STACK) -> None:
    """Prove a mounted credential. Takes the options of the probe: `--credential`, `--proof`, `--once`."""
    command = [sys.executable, "-m", "identity.credentials.probe", *context.args]
    raise typer.Exit(subprocess.run(command, env=variables(stack)).returncode)
