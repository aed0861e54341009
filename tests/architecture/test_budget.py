"""Each room has a budget of lines of Python. A change that adds to a full room says in the same commit what leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.source import CLOUD, ROOT

_CLOUDS_TESTS: Final = CLOUD / "tests"
BUDGET: Final[Mapping[str, int]] = {
    "identity": 14_700,
    "components": 5_750,
    "provider plugin policies": 3_400,
    "ops": 18_800,
    "tools": 2_600,
    "cloud": 25_500,
    "cloud/tests": 18_500,
    "tests": 63_400,
}
_MOST_LINES: Final = 500
"""Of a file: it tells one story."""


def _files(rooms: str) -> list[Path]:
    files = [file for room in rooms.split() for file in (ROOT / room).rglob("*.py")]
    return [file for file in files if rooms != "cloud" or not file.is_relative_to(_CLOUDS_TESTS)]


def _lines(file: Path) -> int:
    return file.read_text(encoding="utf-8").count("\n")


@pytest.mark.parametrize("rooms", BUDGET)
def test_a_room_keeps_within_its_lines(rooms: str) -> None:
    lines = sum(map(_lines, _files(rooms)))
    assert 0 < lines <= BUDGET[rooms], f"{rooms}: {lines} lines, {lines - BUDGET[rooms]} too many"


@pytest.mark.parametrize("rooms", BUDGET)
def test_no_file_has_more_than_500_lines(rooms: str) -> None:
    assert not {str(file.relative_to(ROOT)): _lines(file) for file in _files(rooms) if _lines(file) > _MOST_LINES}


@pytest.mark.parametrize("rooms", BUDGET)
def test_no_file_is_marked_as_unfinished(rooms: str) -> None:
    mark = "TO" + "DO"
    assert not [str(file.relative_to(ROOT)) for file in _files(rooms) if mark in file.read_text(encoding="utf-8")]
