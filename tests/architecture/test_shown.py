"""`docs/explanation/proofs.md` maps claims to tests: every claim is there, and every test exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from ops.stack.environment import LOCAL_STACK, is_local
from tests.architecture.source import ROOT, nodes

_EXPLANATION: Final = ROOT / "docs/explanation"
_TEXT: Final = (_EXPLANATION / "proofs.md").read_text(encoding="utf-8")
_INVARIANT: Final = re.compile(r"^- (?P<text>.*(?:\n  (?!- ).*)*)\n(?P<shown>(?:  .*\n)+)", re.MULTILINE)
_TEST: Final = re.compile(r"(?P<file>[a-z0-9_/]+\.py)::(?P<test>test_\w+)")
# Of the checklist all but the row that is not offered.
_CHECKLIST: Final = {str(number) for number in range(1, 22)} - {"15"}


def _entries(section: str) -> Mapping[str, str]:
    """What a section has for each label: words on the claim, and its tests."""
    block = _TEXT.split(f"\n## {section}\n")[1].split("```\n")[1]
    return dict(re.findall(r"^(\w+) +(.+\n(?: .+\n)*)", block, re.MULTILINE))


def _path(file: str) -> Path:
    """A file of tests/, or of the tests of the local cloud."""
    return ROOT / file if file.startswith("cloud/") else ROOT / "tests" / file


_NAMED: Final = sorted(set(_TEST.findall(_TEXT)))


@pytest.mark.parametrize(("file", "name"), _NAMED, ids=[name for _, name in _NAMED])
def test_a_test_that_proves_a_claim_exists(file: str, name: str) -> None:
    path = _path(file)
    assert path.exists()
    assert name in {node.name for node in nodes(path) if isinstance(node, ast.FunctionDef)}


def test_every_invariant_has_tests_that_exist() -> None:
    entries = list(_INVARIANT.finditer(_TEXT.split("\n## Invariants\n")[1] + "\n"))

    assert len(entries) > 20
    for entry in entries:
        files = re.findall(r"`([^`]+)`", entry["shown"])
        assert files, entry["text"]
        assert not [file for file in files if not _path(file).exists()]


def test_every_row_of_the_checklist_has_a_test() -> None:
    entries = _entries("Access to AKS")

    assert set(entries) == _CHECKLIST
    assert all(_TEST.search(entry) for entry in entries.values())


def test_every_claim_of_the_threat_model_has_a_test_or_says_whose_promise_it_is() -> None:
    text = (_EXPLANATION / "threat-model.md").read_text(encoding="utf-8")
    claims = dict(re.findall(r"^- \*\*([ABET]\d+)\. (.+(?:\n  .+)*)", text, re.MULTILINE))
    entries = _entries("Threat model")

    assert list(claims) == list(entries)
    for label, entry in entries.items():
        assert _TEST.search(entry) or "promise" in entry, label
        # What is open on the page is open here, too: a test beside it shows something else.
        assert entry.startswith("open;") == ("**Open**" in claims[label]), label


def test_every_environment_of_the_workflows_is_in_the_threat_model() -> None:
    text = (_EXPLANATION / "threat-model.md").read_text(encoding="utf-8")
    names = {file.name.split(".")[1] for file in ROOT.glob("Pulumi.*.yaml")}
    # One local cloud has all local stacks.
    stacks = {LOCAL_STACK if is_local(name) else name for name in names}

    assert set(re.findall(r"^- \*\*E\d+\. ([\w-]+)\.\*\*", text, re.MULTILINE)) == stacks


def test_every_sequence_is_described_once_and_has_a_test() -> None:
    text = (_EXPLANATION / "sequences.md").read_text(encoding="utf-8")
    described = re.findall(r"^- \*\*(\d+)\.\*\* ", text, re.MULTILINE)
    entries = _entries("Sequences")

    assert sorted(map(int, described)) == list(range(1, 91))
    assert sorted(map(int, entries)) == list(range(1, 91))
    assert not [label for label, entry in entries.items() if not _TEST.search(entry)]
