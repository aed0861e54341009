"""When a stack of a fleet is left alone: its record, its program and configuration, and its state agree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ops.fleet.records import DIRECTORY, Record, Records, fingerprint

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
WRITTEN = datetime(2026, 11, 20, 12, 0, 0, 612_728, tzinfo=UTC)
UP = Record(outcome="up", at=NOW, program="abc", state=WRITTEN, due=NOW + timedelta(days=1))


def test_a_stack_that_nobody_touched_is_unchanged() -> None:
    assert UP.holds("abc", WRITTEN.replace(microsecond=612_000), NOW), "the engine lists milliseconds"


@pytest.mark.parametrize(
    ("changes", "program", "state", "now"),
    [
        ({"outcome": "failed"}, "abc", WRITTEN, NOW),
        ({}, "another", WRITTEN, NOW),
        ({}, "abc", WRITTEN + timedelta(milliseconds=1), NOW),
        ({}, "abc", None, NOW),
        ({"state": None}, "abc", None, NOW),
        ({}, "abc", WRITTEN, NOW + timedelta(days=1)),
    ],
    ids=["failed", "other program", "run since", "gone", "never written", "a renewal is due"],
)
def test_whatever_does_not_agree_asks_for_a_run(
    changes: dict[str, Any], program: str, state: datetime | None, now: datetime
) -> None:
    assert not UP.model_copy(update=changes).holds(program, state, now)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    records = Records(tmp_path)
    assert records.read("hc1-prod") is None
    records.write("hc1-prod", UP)
    assert Records(tmp_path).read("hc1-prod") == UP
    records.forget("hc1-prod")
    assert records.read("hc1-prod") is None


@pytest.mark.parametrize("text", ["", "{", '{"outcome": "up"}', '{"outcome": "later", "at": "2026-11-23T08:00:00Z"}'])
def test_a_record_that_nobody_understands_is_none(tmp_path: Path, text: str) -> None:
    records = Records(tmp_path)
    records.log("hc1-prod")
    (tmp_path / DIRECTORY / "hc1-prod.json").write_text(text)
    assert records.read("hc1-prod") is None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What decides what a stack becomes, in small."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/stack.py").write_text("one")
    (tmp_path / "components").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "Pulumi.hc1-prod.yaml").write_text("config: {}")
    return tmp_path


@pytest.mark.parametrize("file", ["elsewhere/stack.py", "Pulumi.hc1-prod.yaml", "elsewhere/new.py", "__main__.py"])
def test_another_program_or_configuration_is_another_fingerprint(project: Path, file: str) -> None:
    before = fingerprint(project, "hc1-prod")
    assert fingerprint(project, "hc1-prod") == before
    (project / file).write_text("changed")
    assert fingerprint(project, "hc1-prod") != before


@pytest.mark.parametrize("file", ["elsewhere/stack.pyc", "Pulumi.hc2-prod.yaml", "README.md"])
def test_what_decides_nothing_is_not_in_the_fingerprint(project: Path, file: str) -> None:
    before = fingerprint(project, "hc1-prod")
    (project / file).write_text("changed")
    assert fingerprint(project, "hc1-prod") == before
