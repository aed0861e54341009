"""`idstack probe`: one credential probe (`identity.credentials.probe`), in the environment of a stack."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import typer

from ops.commands.options import DEFAULT_STACK, StackOption
from ops.stack.environment import variables

# `python -m identity.credentials.probe`, with the name of the typed command in its usage.
_PROGRAM: Final = "from identity.credentials.probe.__main__ import start; start('idstack probe')"


def probe(context: typer.Context, stack: StackOption = DEFAULT_STACK) -> None:
    """Prove a mounted credential. Every option but `--stack`, also `--help`, is the probe's own."""
    command = [sys.executable, "-c", _PROGRAM, *context.args]
    raise typer.Exit(subprocess.run(command, env=variables(stack)).returncode)
