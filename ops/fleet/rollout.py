"""Brings the stacks of an environment up: wave after wave, some of a wave side by side, and no more after a failure.

Each run is `idstack up` in a process of its own: the command that a person types. A failure is a run that does not end
with 0: the engine failed, a certificate did not sign in at its gate, or a probe did not. What runs beside it is not
interrupted. It ends, and no other stack begins. A second rollout runs every stack again: it changes nothing in those
that are up.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import BinaryIO, Final

from identity.credentials import rfc3339
from ops.fleet.stacks import FleetEnvironment, FleetStack, Wave
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.stack_document import replace_file
from ops.stack.streaming import handling_signals

_POLL_INTERVAL: Final = 0.2  # seconds


DIRECTORY: Final = ".fleet"
"""In the project; git ignores it."""
# Of the log, for its last lines.
_END: Final = 4096
_TAIL_LINES: Final = 20


@dataclass(frozen=True)
class FailedRun:
    """A failed run: when it ended, and the last line of its output."""

    at: datetime
    reason: str


class StackLog:
    """The log of a stack of the fleet in the project `root`."""

    def __init__(self, root: Path, stack: str) -> None:
        self.file = root / DIRECTORY / f"{stack}.log"
        self._failure = root / DIRECTORY / f"{stack}.failed"

    def begun(self) -> BinaryIO:
        """An empty log for a run that begins."""
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        self._failure.unlink(missing_ok=True)
        return self.file.open("wb")

    def tail(self) -> list[str]:
        """The last lines of the output, without empty ones."""
        with self.file.open("rb") as file:
            file.seek(max(0, self.file.stat().st_size - _END))
            text = file.read().decode(errors="replace")
        return [line.rstrip() for line in text.splitlines() if line.strip()][-_TAIL_LINES:]

    def note_failure(self, reason: str) -> None:
        replace_file(self._failure, reason)

    def failure(self) -> FailedRun | None:
        """The last run on this machine, if that failed."""
        try:
            at, reason = self._failure.stat().st_mtime, self._failure.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return FailedRun(datetime.fromtimestamp(int(at), UTC), reason)


class RolloutOutcome(StrEnum):
    """How a stack's run ended; a stack that never began is left out."""

    UNCHANGED = "unchanged"
    UP = "up"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    LEFT_OUT = "left out"


DONE: Final = frozenset({RolloutOutcome.UP, RolloutOutcome.UNCHANGED})


@dataclass
class StackRun:
    """One stack of a rollout; `tail` is the end of its output, `changed_at` when a run last changed something in it."""

    stack: FleetStack
    wave: str
    log: StackLog
    outcome: RolloutOutcome = RolloutOutcome.LEFT_OUT
    seconds: float = 0.0
    tail: Sequence[str] = ()
    changed_at: datetime | None = None

    def __str__(self) -> str:
        text = f"{self.stack.name} ({self.wave}): {self.outcome} in {self.seconds:.0f} s"
        return f"{text}: {self.tail[-1]}" if self.outcome is RolloutOutcome.FAILED and self.tail else text


@dataclass
class Rollout:
    """The rollout of one environment of the project in `root`, with `parallel` runs at once.

    `arguments` go to each `idstack up`; `show` gets a line at the begin and at the end of each run.
    """

    environment: FleetEnvironment
    arguments: Sequence[str]
    root: Path
    parallel: int
    show: Callable[[str], None]
    wait: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    runs: Sequence[StackRun] = field(init=False)
    interrupted_by: str | None = None
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        self.runs = [
            StackRun(stack, wave.name, StackLog(self.root, stack.name))
            for wave in self.environment.waves
            for stack in wave.stacks
        ]

    @property
    def failed(self) -> list[StackRun]:
        return [run for run in self.runs if run.outcome is RolloutOutcome.FAILED]

    @property
    def is_stopped(self) -> bool:
        """Whether no other stack may begin."""
        return self.interrupted_by is not None or bool(self.failed)

    def run(self) -> None:
        """Bring every stack up, or stop; `runs` has the outcome of each."""
        previous: Sequence[StackRun] = ()
        with handling_signals(self._interrupt), futures.ThreadPoolExecutor(self.parallel) as threads:
            for wave in self.environment.waves:
                self._pause(wave, previous)
                previous = [run for run in self.runs if run.wave == wave.name]
                waiting = [threads.submit(self._bring_up, run) for run in previous]
                while futures.wait(waiting, _POLL_INTERVAL).not_done:
                    self._pass_on()
                for ended in waiting:
                    ended.result()

    def summary(self) -> str:
        """Numbers of the stacks by their outcome: `3 up, 5 left out`."""
        numbers = Counter(run.outcome for run in self.runs)
        return ", ".join(f"{numbers[outcome]} {outcome}" for outcome in RolloutOutcome if numbers[outcome])

    def _pause(self, wave: Wave, previous: Sequence[StackRun]) -> None:
        """Wait for the wave's pause, counted from the last change in the previous wave, whoever made that."""
        changed = [run.changed_at for run in previous if run.changed_at is not None]
        until = max(changed, default=datetime.min.replace(tzinfo=UTC)) + wave.pause
        if not self.is_stopped and until > self.now():
            self.show(f"{wave.name} begins at {until:%H:%M:%S} UTC")
        while not self.is_stopped and (remaining := (until - self.now()).total_seconds()) > 0:
            self.wait(min(remaining, _POLL_INTERVAL))

    def _bring_up(self, run: StackRun) -> None:
        try:
            with self._lock:
                if self.is_stopped:
                    return
                process = self._start(run)
            begun = time.monotonic()
            code = process.wait()
            run.seconds, run.tail = time.monotonic() - begun, run.log.tail()
            run.outcome = self._outcome(run, code)
        except (CommandError, OSError) as error:
            run.outcome, run.tail = RolloutOutcome.FAILED, [*run.tail, f"the end of its run is not known: {error}"]
        if run.outcome not in DONE:
            run.log.note_failure(run.tail[-1] if run.tail else "")
        self._show(str(run))

    def _start(self, run: StackRun) -> subprocess.Popen[bytes]:
        self._show(f"{run.stack.name} ({run.wave}): running")
        with run.log.begun() as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "ops", "up", "--stack", run.stack.name, *self.arguments],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches the fleet's command alone, which passes it on once (`ops/stack/streaming.py`).
                process_group=0,
            )
        self._processes.append(process)
        return process

    def _outcome(self, run: StackRun, code: int) -> RolloutOutcome:
        if code != 0:
            return RolloutOutcome.INTERRUPTED if self.interrupted_by else RolloutOutcome.FAILED
        updates = list(islice(Engine(run.stack.name, self.root).updates(), 20))
        changes = [update for update in updates if update.get("resourceChanges", {}).keys() - {"same"}]
        if not changes:
            return RolloutOutcome.UNCHANGED
        run.changed_at = rfc3339.parse(changes[0]["endTime"])
        return RolloutOutcome.UP if changes[0] is updates[0] else RolloutOutcome.UNCHANGED

    def _show(self, text: str) -> None:
        self.show(f"[{sum(run.outcome in DONE for run in self.runs)}/{len(self.runs)}] {text}")

    def _interrupt(self, number: int, _: FrameType | None) -> None:
        """The first signal stops the rollout; a second one would leave the stacks locked, so it changes nothing."""
        self.interrupted_by = self.interrupted_by or signal.Signals(number).name

    def _pass_on(self) -> None:
        """Ask every run, once, to finish its operations in progress and to unlock its stack, after a signal came."""
        if self.interrupted_by is None:
            return
        with self._lock:
            if self._processes:
                self.show(f"{self.interrupted_by}: waiting for the runs in progress")
            for process in self._processes:
                process.send_signal(signal.SIGINT)
            self._processes.clear()
