"""Pages of `docs/reference` that `make generate` writes (`python -m ops.pages`); tests compare them with their sources.

`commands.md` is the help of `idstack`, `symptoms.md` the table of symptoms.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from identity.symptoms import GENERIC_PLACEHOLDERS, Family, symptoms
from ops.cli import COMMANDS, application

_REFERENCE: Final = Path(__file__).parents[1] / "docs/reference"
COMMANDS_PAGE: Final = _REFERENCE / "commands.md"
SYMPTOMS_PAGE: Final = _REFERENCE / "symptoms.md"
_HELP_WIDTH: Final = 118
_WIDTH: Final = 120
_OF_COMMANDS: Final = """\
# Commands
This page is written by `make generate` from the help of each command; `--help` prints the same.
`make setup` installs `idstack` into `.venv/bin`. The exit code is 0 after success, 1 after a failure and 2 after wrong
usage; [outputs.md](outputs.md) has the commands with other codes.
"""


def commands_page() -> str:
    """A section for each command, also of a group."""
    root = get_command(application())
    root_context = root.make_context("idstack", ["--"], resilient_parsing=True, terminal_width=_HELP_WIDTH)
    sections = (_commands(f"idstack {name}", COMMANDS[name].load(), root_context) for name in sorted(COMMANDS))
    return _OF_COMMANDS + "".join(chain.from_iterable(sections))


def _commands(name: str, command: TyperGroup | TyperCommand, parent: Any) -> Iterator[str]:
    """The help of a command, or of every command of a group; `parent` is the context of the enclosing group."""
    if command.rich_markup_mode is not None:  # boxes and colours
        command.rich_markup_mode = None
    # Without a word a group prints its help.
    context = command.make_context(
        name.split()[-1], ["--"], parent=parent, resilient_parsing=True, terminal_width=_HELP_WIDTH
    )
    if isinstance(command, TyperGroup):
        for word, subcommand in sorted(command.commands.items()):
            assert isinstance(subcommand, TyperGroup | TyperCommand)
            yield from _commands(f"{name} {word}", subcommand, context)
    else:
        yield f"\n## `{name}`\n```text\n{command.get_help(context).strip()}\n```\n"


_OF_SYMPTOMS: Final = """\
# Symptoms
This page is written by `make generate` from the table in `identity/symptoms.yaml`; change it there.

Search it for the code, the reason or a part of the message. `.venv/bin/idstack explain AADSTS700027` prints one entry,
and accepts a whole message in quotes. The doctor prints the same fixes with the names of your stack.
"""


def symptoms_page() -> str:
    return "\n".join([_OF_SYMPTOMS, *(line for family in Family for line in _symptoms(family))])


def _symptoms(family: Family) -> Iterator[str]:
    yield f"## {family}\n"
    for row in symptoms():
        if row.family is family:
            messages = [word.replace('[^"]+', "...") for word in row.words if word != row.name]
            yield f"### {row.name}"
            yield f"{textwrap.fill(f'{row.cause[0].upper()}{row.cause[1:]}.', _WIDTH, break_on_hyphens=False)}\n"
            yield from (f"- Message: `{message}`" for message in messages)
            yield from (_item("Evidence", row.evidence), _item("Fix", row.fix.format_map(GENERIC_PLACEHOLDERS)), "")


def _item(name: str, text: str) -> str:
    """A list item; a command stays on one line, to be copied."""
    whole = re.sub(r"`[^`]*`", lambda command: command[0].replace(" ", "\0"), f"- {name}: {text}")
    lines = textwrap.fill(whole, _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    return lines.replace("\0", " ")


if __name__ == "__main__":
    COMMANDS_PAGE.write_text(commands_page(), encoding="utf-8")
    SYMPTOMS_PAGE.write_text(symptoms_page(), encoding="utf-8")
