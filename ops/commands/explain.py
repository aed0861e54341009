"""`idstack explain`: what a code, an event or a condition means, where its evidence is, and what helps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from rich.text import Text

from identity.credentials.symptom import ON_PAPER, Family, Symptom
from identity.credentials.symptoms import SYMPTOMS, find
from identity.similar import did_you_mean
from ops.commands.options import JsonOption, Screen


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="A code, reason or condition, or a whole message between quotes. Default: list all."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a code of Entra ID, a refusal of the vault, an event of a mount or a condition: cause, evidence, fix.

    It needs no stack and no network. What stands between angle brackets is yours to fill in; `idstack doctor` prints
    the same fixes with the names of your stack.
    """
    screen, text = Screen(as_json), " ".join(words or ())
    rows = _meant(text) if text else SYMPTOMS
    if not rows:
        raise typer.BadParameter(
            f"{text!r} is not in the table{did_you_mean(text, (each.name for each in SYMPTOMS)) or '.'} "
            "`idstack explain` lists all; Microsoft explains every AADSTS code at https://login.microsoftonline.com/error"
        )
    if as_json:
        screen.document([_document(row) for row in rows])
    else:
        screen.console.print(_told(rows) if text else _listed(rows), soft_wrap=True)


def _meant(text: str) -> Sequence[Symptom]:
    """The row of that name, or what a message says: a line for each family of messages."""
    named = [each for each in SYMPTOMS if each.name.lower() == text.lower()]
    return named or [found for family in Family if (found := find(text, family))]


def _told(rows: Iterable[Symptom]) -> Text:
    return Text("\n\n").join(
        Text.assemble(
            (row.name, "bold"),
            f": {row.cause}\n    look  {row.look}\n    fix   {row.fix.format_map(ON_PAPER)}",
        )
        for row in rows
    )


def _listed(rows: Iterable[Symptom]) -> Text:
    lines: dict[Family, list[Text]] = {}
    for row in rows:
        lines.setdefault(row.family, []).append(Text.assemble("  ", (row.name, "bold"), f": {row.cause}"))
    return Text("\n\n").join(Text("\n").join([Text(family), *found]) for family, found in lines.items())


def _document(row: Symptom) -> dict[str, str]:
    return {
        "name": row.name,
        "family": row.family,
        "cause": row.cause,
        "look": row.look,
        "fix": row.fix.format_map(ON_PAPER),
    }
