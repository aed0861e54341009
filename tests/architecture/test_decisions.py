"""Decision records have one form, name alternatives and are in the index; a record that is cited exists."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.source import ROOT

_FOLDER: Final = ROOT / "docs/decisions"
_RECORDS: Final = sorted(path for path in _FOLDER.glob("*.md") if path.name != "README.md")
_MOST: Final = 50
_FORM: Final = re.compile(
    r"# (?P<number>\d{4}): (?P<title>[^\n]+)\n\n"
    r"- Date: (?P<date>\d{4}-\d\d-\d\d)\n"
    r"- Status: (?P<status>accepted|superseded by \d{4})\n"
    r"- Area: (?P<area>[^\n]+)\n\n"
    r"## Decision\n.+?\n\n"
    r"## Alternatives\n(?P<alternatives>.+?)\n\n"
    r"## Consequences\n.+",
    re.DOTALL,
)
_CITED: Final = re.compile(r"\b(?:decision )?record (\d{4})\b|docs/decisions/(\d{4})")
_INTRODUCTION: Final = f"""\
# Decisions

A record names an alternative that a reader would otherwise choose. Everything else is a page, a docstring or a commit
message. There are at most {_MOST}; numbers of removed records are not used again. A new record has the form of the
others and the next number.
`UPDATE_GOLDEN=1 .venv/bin/python -m pytest -n 0 tests/architecture/test_decisions.py` writes this index.

| record | area | decision |
|---|---|---|
"""


def _parts(record: Path) -> re.Match[str]:
    form = _FORM.fullmatch(record.read_text(encoding="utf-8"))
    assert form, f"{record.name} has another form than the records beside it"
    return form


@pytest.mark.parametrize("record", _RECORDS, ids=lambda record: record.stem)
def test_a_record_has_the_form_and_names_an_alternative(record: Path) -> None:
    form = _parts(record)

    assert record.name.startswith(f"{form['number']}-")
    assert re.search(r"^- \*\*", form["alternatives"], re.MULTILINE)
    assert len(record.read_text(encoding="utf-8").split()) <= 400


def test_there_are_not_more_records_than_somebody_reads() -> None:
    assert len(_RECORDS) <= _MOST
    assert len({record.name[:4] for record in _RECORDS}) == len(_RECORDS)


def test_the_index_has_every_record() -> None:
    rows = [
        f"| [{form['number']}]({record.name}) | {form['area']} | {form['title']} |\n"
        for record in _RECORDS
        for form in (_parts(record),)
    ]
    index, text = _FOLDER / "README.md", _INTRODUCTION + "".join(rows)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        index.write_text(text, encoding="utf-8")

    assert index.read_text(encoding="utf-8") == text


def test_a_record_that_is_cited_exists() -> None:
    numbers = {record.name[:4] for record in _RECORDS}
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "localcloud").glob("*.md")]
    rooms = ("components", "emulated", "identity", "localcloud", "ops", "plugin", "policies", "provider", "tests")
    sources = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    cited = {
        (str(path.relative_to(ROOT)), next(filter(None, match)))
        for path in (*pages, *sources)
        for match in _CITED.findall(" ".join(path.read_text(encoding="utf-8").split()))
    }

    assert len(cited) > 10
    assert sorted(place for place in cited if place[1] not in numbers) == []
