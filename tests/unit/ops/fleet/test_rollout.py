"""The order of a fleet's stacks, what stops it, and how it goes on."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from identity.credentials import rfc3339
from ops.fleet.rollout import Rollout, StackLog
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.ops.fleet.world import document, fleet

START: Final = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
# Begins, waits until so many runs have begun and a file exists, and ends with a code; a signal is noted only.
_PROGRAM: Final = """\
import json, os, signal, sys, time
from pathlib import Path
stack = sys.argv[3]
plan = {"code": 0, "begun": 0, "file": ".", **json.loads(Path("plan.json").read_text()).get(stack, {})}
def note(what):
    with open("notes", "a") as notes:
        notes.write(f"{what} {stack}\\n")
signal.signal(signal.SIGINT, lambda *_: note("interrupted"))
note("begun")
while Path("notes").read_text().count("begun") < plan["begun"] or not Path(plan["file"]).exists():
    time.sleep(0.01)
print(*sys.argv[1:], os.getpgid(0) == os.getpid(), sys.stdin.read() == "", flush=True)
sys.stderr.write(f"newest of {stack}\\n\\n")
note("ended")
sys.exit(1 if f"interrupted {stack}" in Path("notes").read_text() else plan["code"])
"""


@dataclass
class Watched:
    """A rollout of the environment `prod` of files/azure.yaml.

    `plan` is what the program does for a stack. Each run changed something at START, but in the `unchanged`. The
    history of the `unreadable` cannot be read.
    """

    root: Path
    plan: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parallel: int = 8
    pause: str | None = None
    size: int | None = 2
    unchanged: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    changed_at: datetime = START
    when_waiting: Callable[[], None] = lambda: None
    lines: list[str] = field(default_factory=list)
    waited: timedelta = timedelta()

    def __post_init__(self) -> None:
        (self.root / "ops").mkdir()
        (self.root / "ops/__init__.py").touch()  # or a PYTHONPATH with the project would win
        (self.root / "ops/__main__.py").write_text(_PROGRAM)
        (self.root / "plan.json").write_text(json.dumps(self.plan))
        (self.root / "notes").touch()
        changed = document()
        changed["environments"][1]["waves"] = {"canaries": ["hc3"], "size": self.size, "pause": self.pause}
        self.rollout = Rollout(
            fleet(changed)[1], ["--yes"], self.root, self.parallel, self.lines.append, self._wait, self._now
        )

    def run(self) -> dict[str, str]:
        """What became of each stack."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Engine, "updates", lambda engine: self._updates(engine.stack))
            self.rollout.run()
        return {run.stack.name: str(run.outcome) for run in self.rollout.runs}

    def noted(self, *words: str) -> list[str]:
        """The stacks of the notes that begin with one of these words, in their order."""
        notes = [line.split() for line in (self.root / "notes").read_text().splitlines()]
        return [stack for word, stack in notes if word in words]

    def most_at_once(self) -> int:
        """How many runs there were at the busiest moment."""
        notes = (self.root / "notes").read_text().splitlines()
        return max(accumulate(1 if line.startswith("begun") else -1 for line in notes))

    def _updates(self, stack: str) -> list[dict[str, Any]]:
        if stack in self.unreadable:
            raise CommandError("the backend does not answer")
        at = {"kind": "update", "result": "succeeded", "endTime": rfc3339.render(self.changed_at)}
        change = {**at, "resourceChanges": {"create": 2, "same": 1}}
        return [*([{**at, "resourceChanges": {"same": 3}}] if stack in self.unchanged else []), change]

    def _wait(self, seconds: float) -> None:
        self.waited += timedelta(seconds=seconds)
        self.when_waiting()

    def _now(self) -> datetime:
        return START + self.waited


ORDER = ["shared-prod", "hc3-prod", "hc1-prod", "hc2-prod", "hc4-prod", "hc5-prod"]


def until(is_reached: Callable[[], bool]) -> None:
    """Wait for it, up to 20 seconds."""
    end = time.monotonic() + 20
    while not is_reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_each_run_is_the_ordinary_command_and_shown_at_its_begin_and_end(tmp_path: Path) -> None:
    watched = Watched(tmp_path, {"hc3-prod": {"code": 3}})
    watched.run()
    assert [line.partition(" in ")[0] for line in watched.lines] == [
        "[0/6] shared-prod (shared): running",
        "[1/6] shared-prod (shared): up",
        "[1/6] hc3-prod (canaries): running",
        "[1/6] hc3-prod (canaries): failed",
    ]
    assert watched.lines[-1].endswith(" s: newest of hc3-prod")
    [failed] = watched.rollout.failed
    assert failed.tail == ["up --stack hc3-prod --yes True True", "newest of hc3-prod"], "its own group, no input"


@pytest.mark.parametrize(("parallel", "most"), [(1, 1), (3, 3), (8, 4)])
def test_of_a_wave_no_more_stacks_run_at_once_than_asked_for(tmp_path: Path, parallel: int, most: int) -> None:
    all_begun = {"begun": 2 + most}
    watched = Watched(tmp_path, dict.fromkeys(ORDER[2:], all_begun), parallel=parallel, size=None)
    watched.run()
    assert watched.most_at_once() == most


def test_a_wave_begins_after_the_last_stack_of_the_one_before(tmp_path: Path) -> None:
    watched = Watched(tmp_path, {"hc1-prod": {"begun": 4}})
    watched.run()
    notes = (tmp_path / "notes").read_text().splitlines()
    assert notes.index("ended hc1-prod") < notes.index("begun hc4-prod")


@pytest.mark.parametrize("first", ["shared-prod", "hc3-prod"])
def test_a_canary_that_fails_keeps_every_wave_from_beginning(tmp_path: Path, first: str) -> None:
    watched = Watched(tmp_path, {first: {"code": 1}})
    behind = ORDER[ORDER.index(first) + 1 :]
    outcomes = watched.run()
    assert outcomes[first] == "failed"
    assert {outcomes[name] for name in behind} == {"left out"}
    assert not set(watched.noted("begun")) & set(behind)
    failure = StackLog(tmp_path, first).failure()
    assert failure is not None
    assert failure.reason == f"newest of {first}"
    assert abs(datetime.now(UTC) - failure.at) < timedelta(minutes=1)


def test_a_history_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    watched = Watched(tmp_path, parallel=2, size=2, unreadable=frozenset({"hc1-prod"}))
    outcomes = watched.run()
    assert (outcomes["hc1-prod"], outcomes["hc4-prod"]) == ("failed", "left out")
    told = "the end of its run is not known: the backend does not answer"
    assert [run.tail[-1] for run in watched.rollout.failed] == [told]


def test_what_runs_beside_a_failure_ends_and_is_not_interrupted(tmp_path: Path) -> None:
    plan: dict[str, dict[str, Any]] = {"hc1-prod": {"code": 1, "begun": 4}, "hc2-prod": {"file": "let-hc2-end"}}
    watched = Watched(tmp_path, plan, parallel=2, size=None)

    def end_hc2() -> None:
        until(lambda: bool(watched.rollout.failed))
        (tmp_path / "let-hc2-end").touch()

    Thread(target=end_hc2).start()
    outcomes = watched.run()
    assert (outcomes["hc1-prod"], outcomes["hc2-prod"]) == ("failed", "up")
    assert (outcomes["hc4-prod"], outcomes["hc5-prod"]) == ("left out", "left out")
    assert watched.noted("interrupted") == []


def test_the_stacks_come_in_their_order_and_a_run_that_changed_nothing_is_unchanged(tmp_path: Path) -> None:
    log = StackLog(tmp_path, "hc1-prod")
    log.begun().close()
    log.note_failure("AADSTS700027")
    watched = Watched(tmp_path, parallel=1, unchanged=frozenset(ORDER[:3]))
    assert watched.run() == dict.fromkeys(ORDER, "up") | dict.fromkeys(ORDER[:3], "unchanged")
    assert watched.noted("begun") == ORDER
    assert watched.rollout.summary() == "3 unchanged, 3 up"
    assert log.failure() is None, "a run that succeeds ends the report of a failed one"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on_once_and_every_end_awaited(tmp_path: Path, number: signal.Signals) -> None:
    watched = Watched(tmp_path, {name: {"file": "let-all-end"} for name in ("hc1-prod", "hc2-prod")})

    def twice() -> None:
        until(lambda: {"hc1-prod", "hc2-prod"} <= set(watched.noted("begun")))
        os.kill(os.getpid(), number)
        until(lambda: len(watched.noted("interrupted")) == 2)
        os.kill(os.getpid(), number)
        time.sleep(0.5)
        (tmp_path / "let-all-end").touch()

    before = signal.getsignal(number)
    Thread(target=twice).start()
    outcomes = watched.run()
    assert watched.rollout.interrupted_by == number.name
    assert sorted(watched.noted("interrupted")) == ["hc1-prod", "hc2-prod"]
    assert {outcomes["hc1-prod"], outcomes["hc2-prod"]} == {"interrupted"}
    assert {outcomes["hc4-prod"], outcomes["hc5-prod"]} == {"left out"}
    assert f"{number.name}: waiting for the runs in progress" in watched.lines
    assert signal.getsignal(number) is before


def test_the_pause_counts_from_the_last_change_in_the_wave_before(tmp_path: Path) -> None:
    watched = Watched(tmp_path, pause="30m", size=None, changed_at=START - timedelta(minutes=20))
    watched.run()
    assert timedelta(minutes=10) <= watched.waited < timedelta(minutes=10, seconds=5)
    assert "wave 1 begins at 08:10:00 UTC" in watched.lines


def test_a_rerun_waits_for_the_rest_of_a_pause_and_for_no_pause_that_is_over(tmp_path: Path) -> None:
    for folder, minutes, rest in (("during", 20, 10), ("after", 40, 0)):
        (tmp_path / folder).mkdir()
        at = START - timedelta(minutes=minutes)
        watched = Watched(tmp_path / folder, pause="30m", size=None, unchanged=frozenset(ORDER[:2]), changed_at=at)
        watched.run()
        assert round(watched.waited.total_seconds() / 60) == rest


def test_a_signal_during_a_pause_ends_it(tmp_path: Path) -> None:
    watched = Watched(tmp_path, pause="30m")

    def interrupt() -> None:
        if watched.lines[-1].startswith("wave 1"):
            os.kill(os.getpid(), signal.SIGINT)

    watched.when_waiting = interrupt
    outcomes = watched.run()
    assert (outcomes["hc3-prod"], outcomes["hc1-prod"]) == ("up", "left out")
    assert watched.waited < timedelta(minutes=1)
