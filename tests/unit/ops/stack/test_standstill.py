"""The engine's event log, in which a run that waits for ever looks like no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops.stack.streaming import Standstill

LATER = 15.0
PRE, OUTPUTS, FAILED = "resourcePreEvent", "resOutputsEvent", "resOpFailedEvent"


class Run:
    """A run of the engine with its log, and a clock."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.time = 0.0
        self.standstill = Standstill(log, lambda: self.time)

    def logs(self, kind: str, name: str, op: str, *, custom: bool = True) -> None:
        event = {"sequence": 1, kind: {"metadata": {"urn": name, "op": op, "new": {"urn": name, "custom": custom}}}}
        with self.log.open("a") as file:
            file.write(json.dumps(event) + "\n")

    def is_reached_after(self, seconds: float) -> bool:
        self.standstill.is_reached()
        self.time += seconds
        return self.standstill.is_reached()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "events")


def failed_deletion(run: Run, op: str = "delete-replaced") -> None:
    run.logs(PRE, "registration", op)
    run.logs(FAILED, "registration", op)


def test_a_step_under_way_is_waited_for(run: Run) -> None:
    run.logs(PRE, "gate", "create")
    failed_deletion(run)

    assert not run.is_reached_after(10 * LATER)
    run.logs(OUTPUTS, "gate", "create")
    assert not run.is_reached_after(LATER - 1)
    assert run.is_reached_after(1)


def test_every_event_restarts_the_time_and_a_component_has_none(run: Run) -> None:
    run.logs(PRE, "component", "same", custom=False)
    failed_deletion(run)
    assert not run.is_reached_after(LATER - 1)
    run.logs("diagnosticEvent", "x", "y")
    assert not run.is_reached_after(LATER - 1)
    assert run.is_reached_after(1)


@pytest.mark.parametrize("op", ["create", "update", "delete"])
def test_the_engine_goes_on_by_itself_after_other_failures(run: Run, op: str) -> None:
    assert not run.is_reached_after(10 * LATER), "there is no log yet"
    run.log.touch()
    assert not run.is_reached_after(10 * LATER), "it has begun with nothing"
    failed_deletion(run, op)

    assert not run.is_reached_after(10 * LATER)


def test_a_line_is_read_when_it_is_complete(run: Run) -> None:
    failed_deletion(run)
    text = run.log.read_text()
    run.log.write_text(text[:-20])
    assert not run.is_reached_after(10 * LATER)
    run.log.write_text(text)
    assert not run.is_reached_after(LATER - 1)
    assert run.is_reached_after(1)
