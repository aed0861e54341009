"""A document that names the test that shows something names one that exists."""

from __future__ import annotations

import ast
import re
from typing import Final

import pytest

from ops.stack.environment import LOCAL_STACK, is_local
from tests.architecture.source import ROOT, nodes

_DOCUMENT: Final = ROOT / "docs/guides/aks-access.md"
_THREATS: Final = ROOT / "docs/explanation/threat-model.md"
_SEQUENCES: Final = ROOT / "docs/explanation/sequences.md"
_TEST: Final = re.compile(r"`(?P<file>[a-z0-9_/]+\.py)::(?P<name>test_\w+)`")
_NAMED: Final = sorted(
    {
        (found["file"], found["name"])
        for document in (_DOCUMENT, _THREATS, _SEQUENCES)
        for found in _TEST.finditer(document.read_text(encoding="utf-8"))
    }
)
# What no test of ours can show.
_PROMISE: Final = re.compile(r"\b(Azure|GitHub|Kubernetes)'s? promise|^open\b")
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


def test_every_line_of_the_threat_model_has_a_test_or_says_whose_promise_it_is() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in _THREATS.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.endswith("shown by |")
    ]

    assert len(rows) > 30
    for row in rows:
        assert _TEST.search(row[-1]) or _PROMISE.search(row[-1].rstrip("| ")), row[0]
        # What is marked as open in a row is open in its last column, too: a test beside it shows something else.
        assert any("**Open**" in cell for cell in row) == row[-1].startswith("open"), row[0]


def test_every_environment_of_the_workflows_has_its_line_in_the_threat_model() -> None:
    text = _THREATS.read_text(encoding="utf-8")
    table = text[text.index("## Per environment") :].split("\n\n", 1)[0]
    names = {file.name.split(".")[1] for file in ROOT.glob("Pulumi.*.yaml")}
    # One local cloud has all local stacks.
    stacks = {LOCAL_STACK if is_local(name) else name for name in names}

    assert {line.split("|")[1].strip() for line in table.splitlines()[3:]} == stacks


def test_every_sequence_is_there_once_with_the_test_that_shows_it() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in _SEQUENCES.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| *\d", line)
    ]

    assert sorted(int(number) for number, *_ in rows) == list(range(1, 60))
    for number, happens, ends, shown in rows:
        assert happens, number
        assert ends, number
        tests, rest = _TEST.findall(shown), _TEST.sub("", shown).replace("<br>", "").strip("| ")
        # What no test can show has its reason there.
        assert rest == "" if tests else rest.startswith("no test: "), number
