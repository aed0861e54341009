"""A rollout whose runs, clock and waiting are the test's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from ops.fleet.engine_stacks import EngineStacks
from ops.fleet.processes import StackRun
from ops.fleet.rollout import Progress, Rollout
from ops.fleet.stacks import FleetEnvironment, FleetStack
from ops.stack.errors import CommandError
from tests.unit.ops.fleet.world import document, fleet

START: Final = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)


@dataclass
class FakeRun(StackRun):
    """A run that ends with `code` after so many looks."""

    name: str
    code: int = 0
    looks: int = 2
    interrupts: int = 0

    def poll(self) -> int | None:
        self.looks -= 1
        return None if self.looks > 0 else self.code

    def interrupt(self) -> None:
        self.interrupts += 1
        self.code = 1

    def last_line(self) -> str:
        return f"newest of {self.name}"

    def tail(self) -> str:
        return f"end of {self.name}"


@dataclass
class FakeStacks(EngineStacks):
    """Runs that end as `codes` says, 0 by default; `unchanged` and `ended_at` are what earlier commands left.

    The states of the `unreadable` cannot be read after their runs.
    """

    codes: Mapping[str, int] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)
    unchanged: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    ended_at: dict[str, datetime] = field(default_factory=dict)
    runs: dict[str, FakeRun] = field(default_factory=dict)
    outcomes: list[tuple[str, bool, str]] = field(default_factory=list)
    now: Callable[[], datetime] = lambda: START

    def is_unchanged(self, stack: FleetStack) -> bool:
        return stack.name in self.unchanged

    def start(self, stack: FleetStack) -> FakeRun:
        run = FakeRun(stack.name, self.codes.get(stack.name, 0), self.looks.get(stack.name, 2))
        self.runs[stack.name] = run
        return run

    def ended(self, stack: FleetStack, *, is_up: bool, reason: str) -> None:
        if stack.name in self.unreadable:
            raise CommandError("the backend does not answer")
        self.outcomes.append((stack.name, is_up, reason))
        self.ended_at[stack.name] = self.now()

    def brought_up_at(self, stack: FleetStack) -> datetime | None:
        return self.ended_at.get(stack.name)


@dataclass
class Watched:
    """A rollout of the environment `prod` of files/azure.yaml; `at_once` is how many runs there were at each look."""

    stacks: FakeStacks
    parallel: int = 8
    pause: str | None = None
    size: int | None = 2
    when_waiting: Callable[[], None] = lambda: None
    at_once: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    waited: timedelta = timedelta()

    def __post_init__(self) -> None:
        changed = document()
        changed["environments"][1]["waves"] = {"canaries": ["hc3"], "size": self.size, "pause": self.pause}
        self.rollout = Rollout(
            self._environment(changed), self.stacks, self.parallel, self._show, self._wait, self._now, lambda: 0.0
        )
        self.stacks.now = self._now

    def run(self) -> dict[str, str]:
        """What became of each stack."""
        self.rollout.run()
        return {progress.stack.name: str(progress.outcome) for progress in self.rollout.progress}

    def _environment(self, changed: dict[str, object]) -> FleetEnvironment:
        return fleet(changed)[1]

    def _show(self, progress: Sequence[Progress], note: str) -> None:
        self.at_once.append(sum(run.outcome == "running" for run in progress))
        self.notes.append(note)

    def _wait(self, seconds: float) -> None:
        self.waited += timedelta(seconds=seconds)
        self.when_waiting()

    def _now(self) -> datetime:
        return START + self.waited
