"""A document that names the test that shows something names one that exists."""

from __future__ import annotations

import ast
import re
from typing import Final

import pytest

from tests.architecture.source import ROOT, nodes

_DOCUMENT: Final = ROOT / "docs/aks-access.md"
_TEST: Final = re.compile(r"`(?P<file>[a-z0-9_/]+\.py)::(?P<name>test_\w+)`")
_NAMED: Final = [(found["file"], found["name"]) for found in _TEST.finditer(_DOCUMENT.read_text(encoding="utf-8"))]
# Of the checklist all but the row that the document lists as not offered.
_ROWS: Final = set(range(1, 22)) - {15}


def test_every_row_of_the_checklist_is_there() -> None:
    text = _DOCUMENT.read_text(encoding="utf-8")
    table = text[text.index("shown by, below `tests/`") :].split("\n\n", 1)[0]
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == _ROWS
    assert all(_TEST.search(line) for line in table.splitlines()[2:])


@pytest.mark.parametrize(("file", "name"), _NAMED, ids=[name for _, name in _NAMED])
def test_a_test_that_a_document_names_exists(file: str, name: str) -> None:
    path = ROOT / "tests" / file
    assert path.exists()
    assert name in {node.name for node in nodes(path) if isinstance(node, ast.FunctionDef)}
