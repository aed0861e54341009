"""Options every command has, and the consoles it prints to."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.console import Console

from ops.stack.environment import LOCAL_STACK

StackOption: TypeAlias = Annotated[str, typer.Option("--stack", "-s", help="Which stack.", show_default=True)]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
DEFAULT_STACK = LOCAL_STACK
_ENDLESS: Final = 100_000
# What the engine or another command takes follows the command's own options.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


@dataclass(frozen=True)
class Screen:
    """Where a command talks: with `--json` standard output carries the document alone, standard error all else."""

    as_json: bool

    @property
    def output(self) -> int:
        """File descriptor for what child processes print."""
        return sys.stderr.fileno() if self.as_json else sys.stdout.fileno()

    @property
    def console(self) -> Console:
        """For people. Where there is no terminal, a line may have any length."""
        console = Console(stderr=self.as_json, highlight=False, soft_wrap=True)
        if not console.is_terminal:
            console.width = _ENDLESS
        return console

    def step(self, name: str) -> None:
        """Announce a step."""
        self.console.print(f"[bold]{name}[/bold]")

    def document(self, document: Any) -> None:
        """The JSON document of `--json`."""
        print(json.dumps(document, indent=2))
