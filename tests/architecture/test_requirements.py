"""The lock: what a person asked for is pinned, and everything that is installed has hashes."""

from __future__ import annotations

import re
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import ROOT

WANTED: Final = [
    Requirement(line.partition("#")[0])
    for line in (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
    if line.partition("#")[0].strip()
]
# One entry of the lock: its pin, and the lines that belong to it.
LOCKED: Final = re.findall(
    r"^(\S.*?==.*(?:\n .*)*)", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE
)


def pins() -> dict[str, Requirement]:
    """The lock's entries by package, as `uv pip sync` and `pip install -r` read them."""
    parsed = (Requirement(entry.partition("\\")[0]) for entry in LOCKED)
    return {canonicalize_name(pin.name): pin for pin in parsed}


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_each_requirement_is_pinned_to_a_version_it_allows(wanted: Requirement) -> None:
    pin = pins()[canonicalize_name(wanted.name)]
    [exact] = pin.specifier
    assert exact.operator == "=="
    assert wanted.specifier.contains(exact.version), "run `make lock`"


def test_everything_that_is_installed_has_hashes() -> None:
    assert len(LOCKED) > len(WANTED)
    assert not [entry.splitlines()[0] for entry in LOCKED if "--hash=sha256:" not in entry]


def test_the_lock_names_no_index() -> None:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert not re.findall(r"index-url|https?://", text), "where packages come from is each machine's own setting"
