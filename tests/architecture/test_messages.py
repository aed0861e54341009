"""The long messages of the commands: every row is used, and gets exactly the words in its braces."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from string import Formatter
from typing import Final

import pytest
import yaml

from tests.architecture.source import ROOT, files, nodes, place

_TABLES: Final = {
    file: yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(ROOT.glob("ops/*/messages.yaml"))
}
_ROWS: Final[dict[str, str]] = {
    f"{module}.{row}": text
    for table in _TABLES.values()
    for module, rows in table.items()
    for row, text in rows.items()
}


@cache
def _uses() -> tuple[tuple[str, frozenset[str | None], str], ...]:
    return tuple(_calls())


def _calls() -> Iterator[tuple[str, frozenset[str | None], str]]:
    """Row, words and place of each call of `message`, whose row may be one of two."""
    for file in files("ops"):
        for node in nodes(file):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "message":
                [case] = node.args
                words = frozenset(word.arg for word in node.keywords)
                for row in (case.body, case.orelse) if isinstance(case, ast.IfExp) else (case,):
                    assert isinstance(row, ast.Constant), place(file, node.lineno)
                    yield str(row.value), words, place(file, node.lineno)


@pytest.mark.parametrize("row", _ROWS)
def test_a_message_gets_the_words_in_its_braces(row: str) -> None:
    named = {name for _, name, _, _ in Formatter().parse(_ROWS[row]) if name is not None}
    given = {place: words for used, words, place in _uses() if used == row}

    assert given, "nothing says it"
    assert not {place: words ^ named for place, words in given.items() if words != named}


def test_every_message_that_is_said_is_in_a_table() -> None:
    assert not {place: row for row, _, place in _uses() if row not in _ROWS}


def test_a_table_has_the_messages_of_the_modules_beside_it() -> None:
    modules = {f"{file.parent.name}.{module}" for file, table in _TABLES.items() for module in table}

    assert modules <= {f"{file.parent.name}.{file.stem.rstrip('_')}" for file in files("ops")}
    assert len(_ROWS) == sum(len(rows) for table in _TABLES.values() for rows in table.values())
