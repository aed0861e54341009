"""Brings the stacks of an environment up: wave after wave, some of a wave side by side, and no more after a failure.

A failure is a run that does not end with 0: the engine failed, a certificate did not sign in at its gate, or a probe
did not. What runs beside it is not interrupted. It ends, and no other stack begins.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import FrameType
from typing import Final

from ops.fleet.engine_stacks import EngineStacks
from ops.fleet.processes import StackRun
from ops.fleet.stacks import FleetEnvironment, FleetStack, Wave
from ops.stack.errors import CommandError
from ops.stack.streaming import handling_signals

_POLL_INTERVAL: Final = 0.2  # seconds


class RolloutOutcome(StrEnum):
    """The state of a stack in a rollout."""

    WAITING = "waiting"
    RUNNING = "running"
    UNCHANGED = "unchanged"
    UP = "up"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    LEFT_OUT = "left out"


DONE: Final = frozenset({RolloutOutcome.UP, RolloutOutcome.UNCHANGED})


@dataclass
class Progress:
    """One stack of a rollout; `seconds` is the duration of its run so far, `line` the newest of its output."""

    stack: FleetStack
    wave: str
    outcome: RolloutOutcome = RolloutOutcome.WAITING
    seconds: float = 0.0
    line: str = ""
    tail: str = ""


@dataclass
class Rollout:
    """The rollout of one environment, with `parallel` runs at once; `show` is called after each possible change."""

    environment: FleetEnvironment
    stacks: EngineStacks
    parallel: int
    show: Callable[[Sequence[Progress], str], None]
    wait: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    clock: Callable[[], float] = time.monotonic
    progress: list[Progress] = field(init=False)
    interrupted_by: str | None = None

    def __post_init__(self) -> None:
        self.progress = [Progress(stack, wave.name) for wave in self.environment.waves for stack in wave.stacks]

    @property
    def is_stopped(self) -> bool:
        """Whether no other stack may begin."""
        return self.interrupted_by is not None or bool(self.failed)

    @property
    def failed(self) -> list[Progress]:
        """The stacks whose run failed."""
        return [entry for entry in self.progress if entry.outcome is RolloutOutcome.FAILED]

    def run(self) -> None:
        """Bring every stack up, or stop; `progress` has the outcome of each."""
        with handling_signals(self._interrupt):
            previous: Wave | None = None
            for wave in self.environment.waves:
                of_wave = [entry for entry in self.progress if entry.wave == wave.name]
                for entry in of_wave:
                    if not self.is_stopped and self.stacks.is_unchanged(entry.stack):
                        entry.outcome = RolloutOutcome.UNCHANGED
                if previous is not None and not all(entry.outcome is RolloutOutcome.UNCHANGED for entry in of_wave):
                    self._pause(wave, previous)
                self._run(of_wave)
                if self.is_stopped:
                    break
                previous = wave
        for entry in self.progress:
            if entry.outcome is RolloutOutcome.WAITING:
                entry.outcome = RolloutOutcome.LEFT_OUT
        self.show(self.progress, "")

    def _run(self, wave: Sequence[Progress]) -> None:
        waiting = deque(entry for entry in wave if entry.outcome is RolloutOutcome.WAITING)
        running: list[tuple[Progress, StackRun, float]] = []
        is_passed_on = False
        while running or (waiting and not self.is_stopped):
            while waiting and len(running) < self.parallel and not self.is_stopped:
                entry = waiting.popleft()
                entry.outcome = RolloutOutcome.RUNNING
                running.append((entry, self.stacks.start(entry.stack), self.clock()))
            if self.interrupted_by and not is_passed_on:
                is_passed_on = True
                for _, run, _ in running:
                    run.interrupt()
            running = [started for started in running if not self._has_ended(*started)]
            self.show(self.progress, f"{self.interrupted_by}: waiting for the runs in progress" if is_passed_on else "")
            if running:
                self.wait(_POLL_INTERVAL)

    def _has_ended(self, entry: Progress, run: StackRun, started: float) -> bool:
        code = run.poll()
        entry.line, entry.seconds = run.last_line(), self.clock() - started
        if code is None:
            return False
        if code == 0:
            entry.outcome = RolloutOutcome.UP
        else:
            entry.tail = run.tail()
            entry.outcome = RolloutOutcome.INTERRUPTED if self.interrupted_by else RolloutOutcome.FAILED
        try:
            self.stacks.ended(entry.stack, is_up=code == 0, reason=entry.line)
        except CommandError as error:
            # Its siblings end normally; the next rollout brings it up again, as no record says that it is up.
            entry.outcome, entry.tail = RolloutOutcome.FAILED, f"it came up, but its state cannot be read: {error}"
        return True

    def _pause(self, wave: Wave, previous: Wave) -> None:
        """Wait for the wave's pause, counted from the end of the previous wave, also if another command ran that."""
        ended = [at for stack in previous.stacks if (at := self.stacks.brought_up_at(stack)) is not None]
        until = max(ended, default=self.now()) + wave.pause
        while not self.is_stopped and (remaining := (until - self.now()).total_seconds()) > 0:
            self.show(self.progress, f"{wave.name} begins at {until:%H:%M:%S} UTC")
            self.wait(min(remaining, _POLL_INTERVAL))

    def _interrupt(self, number: int, _: FrameType | None) -> None:
        """The first signal stops the rollout; a second one would leave the stacks locked, so it changes nothing."""
        self.interrupted_by = self.interrupted_by or signal.Signals(number).name
