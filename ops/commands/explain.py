"""`idstack explain`: cause, evidence and fix of an error code, an event or a condition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.text import Text

from identity.similar import did_you_mean
from identity.symptoms import GENERIC_PLACEHOLDERS, Family, Symptom, find, symptoms
from ops.commands.options import JsonOption, Screen
from ops.stack.errors import message


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="A code, reason or condition, or a whole message in quotes. Default: list all.",
            autocompletion=lambda: [symptom.name for symptom in symptoms()],
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a code of Entra ID or ARM, a refusal of the vault, an event or a condition: cause, evidence, fix.

    It needs no stack and no network. Replace words in angle brackets with your names; `idstack doctor` prints the same
    fixes with the names of your stack.
    """
    text = " ".join(words or ())
    named = [symptom for symptom in symptoms() if symptom.name.lower() == text.lower()]
    # Those that a message matches, one of each family.
    rows = (named or [symptom for family in Family if (symptom := find(text, family))]) if text else symptoms()
    if not rows:
        similar = did_you_mean(text, (symptom.name for symptom in symptoms())) or "."
        raise typer.BadParameter(message("explain.unknown", text=text, similar=similar))
    Screen(as_json).show([_document(row) for row in rows], _explained(rows) if text else _list_by_family(rows))


def _explained(rows: Iterable[Symptom]) -> Text:
    return Text("\n\n").join(
        Text.assemble(
            (row.name, "bold"),
            f": {row.cause}\n    evidence  {row.evidence}\n    fix       {row.fix.format_map(GENERIC_PLACEHOLDERS)}",
        )
        for row in rows
    )


def _list_by_family(rows: Iterable[Symptom]) -> Text:
    lines: dict[Family, list[Text]] = {}
    for row in rows:
        lines.setdefault(row.family, []).append(Text.assemble("  ", (row.name, "bold"), f": {row.cause}"))
    return Text("\n\n").join(Text("\n").join([Text(family), *entries]) for family, entries in lines.items())


def _document(row: Symptom) -> dict[str, str]:
    return {
        "name": row.name,
        "family": row.family,
        "cause": row.cause,
        "evidence": row.evidence,
        "fix": row.fix.format_map(GENERIC_PLACEHOLDERS),
    }
