"""`docs/reference/symptoms.md`, written from the table of symptoms.

`python -m ops.doctor.symptoms_page` (`make generate`) writes it; a test compares it with the table.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from identity.credentials.symptom import GENERIC_PLACEHOLDERS, Family
from identity.credentials.symptoms import SYMPTOMS

PAGE: Final = Path(__file__).parents[2] / "docs/reference/symptoms.md"
_WIDTH: Final = 120
_INTRODUCTION: Final = """\
# Symptoms
This page is written by `make generate` from the table in `identity/credentials/symptoms.py`; change it there.

Search it for the code, the reason or a part of the message. `.venv/bin/idstack explain AADSTS700027` prints one entry,
and accepts a whole message in quotes. The doctor prints the same fixes with the names of your stack.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *(line for family in Family for line in _section(family))])


def _section(family: Family) -> Iterator[str]:
    yield f"## {family}\n"
    for row in SYMPTOMS:
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
    PAGE.write_text(page(), encoding="utf-8")
