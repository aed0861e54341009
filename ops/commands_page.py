"""`docs/reference/commands.md`, written from the help of `idstack` (`make generate`); a test compares the two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ops.cli import COMMANDS, application

PAGE: Final = Path(__file__).parents[1] / "docs/reference/commands.md"
_WIDTH: Final = 118
_INTRODUCTION: Final = """\
# Commands
This page is written by `make generate` from the help of each command; `--help` prints the same.
`make setup` installs `idstack` into `.venv/bin`. The exit code is 0 after success, 1 after a failure and 2 after wrong
usage; [outputs.md](outputs.md) has the commands with other codes.
"""


def page() -> str:
    """The page: a section for each command, also of a group."""
    root = get_command(application())
    root_context = root.make_context("idstack", ["--"], resilient_parsing=True, terminal_width=_WIDTH)
    commands = (_sections(f"idstack {name}", COMMANDS[name].load(), root_context) for name in sorted(COMMANDS))
    return _INTRODUCTION + "".join(chain.from_iterable(commands))


def _sections(name: str, command: TyperGroup | TyperCommand, parent: Any) -> Iterator[str]:
    """The help of a command, or of every command of a group; `parent` is the context of the enclosing group."""
    if command.rich_markup_mode is not None:  # boxes and colours
        command.rich_markup_mode = None
    # Without a word a group prints its help.
    context = command.make_context(
        name.split()[-1], ["--"], parent=parent, resilient_parsing=True, terminal_width=_WIDTH
    )
    if isinstance(command, TyperGroup):
        for word, subcommand in sorted(command.commands.items()):
            assert isinstance(subcommand, TyperGroup | TyperCommand)
            yield from _sections(f"{name} {word}", subcommand, context)
    else:
        yield f"\n## `{name}`\n```text\n{command.get_help(context).strip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
