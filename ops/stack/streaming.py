"""Runs the engine in the foreground, interrupts it at signals and deadlines, and keeps its standard error."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from ops.stack.errors import WrongUsageError, message
from ops.stack.lock import is_locked, owners

_STANDARD_OUTPUT: Final = 1
_POLL_INTERVAL: Final = 1.0  # seconds
STANDSTILL: Final = "its own standstill"


@dataclass(frozen=True)
class Ended:
    """The end of an engine run: its exit code (negative: the signal that killed it) and its standard error.

    `interrupted_by` names the signal, the time limit or `STANDSTILL` that interrupted it; None if nothing did.
    """

    code: int
    errors: str
    interrupted_by: str | None


@contextmanager
def handling_signals(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Let `handler` have SIGINT and SIGTERM of this process."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def run_streaming(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    output: int,
    deadline: Deadline | None = None,
    standstill: Standstill | None = None,
    started: Callable[[int], None] = lambda pid: None,
) -> Ended:
    """Run `command` to its end; its standard error is printed at once, but for locks.

    Its standard output goes to the file descriptor `output`. SIGINT, SIGTERM, the deadline or a `standstill` interrupt
    it once: it finishes the operations in progress and unlocks the stack, and this process waits for that. A second
    signal would make the engine leave both to `recover` (pulumi/pulumi `pkg/backend/cancellation_scope.go`), so it is
    not passed on. `started` is called with the engine's process id.
    """
    errors = []
    interruption = _Interruption()
    with (
        handling_signals(interruption.handle),
        terminal_for(output) as terminal,
        subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=terminal.input,
            stdout=terminal.output,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,  # out of reach of signals to this process's group (`timeout`)
        ) as process,
        interruption.of(process, terminal, deadline, standstill),
    ):
        started(process.pid)
        assert process.stderr is not None
        for line in process.stderr:
            errors.append(line)
            # Of a lock a LockedError tells. The engine advises to delete that of another run, which may be active.
            if not (is_locked(line) or owners(line)):
                print(line, end="", file=sys.stderr, flush=True)
    return Ended(process.returncode, "".join(errors), interruption.reason)


def run_passing_on(command: Sequence[str], *, directory: Path, environment: Mapping[str, str]) -> int:
    """Run another `idstack` in this terminal, and pass signals on to it as to an engine; returns its exit code."""
    interruption = _Interruption()
    with (
        handling_signals(interruption.handle),
        terminal_for(_STANDARD_OUTPUT) as terminal,
        subprocess.Popen(
            command, cwd=directory, env=environment, stdin=terminal.input, stdout=terminal.output, process_group=0
        ) as process,
        interruption.of(process, terminal),
    ):
        return process.wait()


class _Interruption:
    """Interrupts the engine once."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._engine: Callable[[signal.Signals], None] | None = None
        self._pending: signal.Signals | None = None
        # Reentrant: a signal handler may interrupt the holder.
        self._lock = threading.RLock()

    @contextmanager
    def of(
        self,
        process: subprocess.Popen[Any],
        terminal: Terminal,
        deadline: Deadline | None = None,
        standstill: Standstill | None = None,
    ) -> Iterator[None]:
        """Interrupt this engine in its terminal: at a signal, also one during its start, the deadline, a standstill.

        A handler that Python has to run would wait for the end of a read that has just begun: the engine's next line.
        """
        with self._lock:
            self._engine = partial(terminal.send, process)
            if self._pending is not None:
                self._engine(self._pending)
        received, wakeup = os.pipe()
        os.set_blocking(wakeup, False)

        def watch() -> None:
            while self.reason is None:
                left = min(_POLL_INTERVAL, deadline.left) if deadline else _POLL_INTERVAL
                if select.select([received], [], [], left)[0]:
                    numbers = os.read(received, 1 << 10)
                    for number in {signal.SIGINT, signal.SIGTERM}.intersection(numbers):
                        self.handle(number, None)
                    if not numbers:
                        return  # the engine has ended
                is_over = deadline is not None and not deadline.left
                if is_over or (standstill is not None and standstill.is_reached()):
                    self._send(signal.SIGINT, str(deadline) if is_over else STANDSTILL)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        before = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            os.close(wakeup)
            watcher.join()
            os.close(received)

    def handle(self, number: int, _: FrameType | None) -> None:
        """The handler of this process's signals, from before the engine starts."""
        self._send(signal.Signals(number), signal.Signals(number).name)

    def _send(self, number: signal.Signals, reason: str) -> None:
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            if self._engine is None:
                self._pending = number
            else:
                self._engine(number)


# The operation of deletions before a replacement, and of those after one, which the engine survives.
_DELETION: Final = "delete-replaced"
# Seconds without an event and without a step in progress, longer than a program's pause between two resources.
_QUIET: Final = 15.0


class Standstill:
    """Follows the event log of an engine run; the file may not exist yet."""

    def __init__(self, log: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now = now
        self._read = 0
        self._in_progress: set[tuple[str, str]] = set()
        self._has_failed = False
        self._since = now()

    def is_reached(self) -> bool:
        """Read new events; returns whether the engine is deadlocked."""
        if self._follow() or self._in_progress or not self._has_failed:
            self._since = self._now()
        return self._now() - self._since >= _QUIET

    def _follow(self) -> bool:
        """Read new events; returns whether there were any."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._read)
                # The last line may be incomplete.
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return False
        for line in whole.splitlines():
            self._take(json.loads(line))
        self._read += len(whole) + len(end)
        return bool(end)

    def _take(self, event: dict[str, Any]) -> None:
        for kind in ("resourcePreEvent", "resOutputsEvent", "resOpFailedEvent"):
            metadata = event.get(kind, {}).get("metadata")
            if metadata is None:
                continue
            step = (metadata["urn"], metadata["op"])
            if kind == "resourcePreEvent":
                # A component ends with its outputs, which the program may never have.
                if (metadata.get("new") or metadata.get("old") or {}).get("custom"):
                    self._in_progress.add(step)
                continue
            self._in_progress.discard(step)
            self._has_failed |= kind == "resOpFailedEvent" and metadata["op"] == _DELETION


@dataclass(frozen=True)
class Deadline:
    """`ends` on the monotonic clock, in seconds, `minutes` after the command began."""

    minutes: float
    ends: float

    @classmethod
    def parse(cls, text: str) -> Deadline:
        """So many minutes from now on; raises WrongUsageError for anything but a positive number."""
        try:
            minutes = float(text)
        except ValueError:
            minutes = 0.0
        if not 0 < minutes < float("inf"):
            raise WrongUsageError(message("streaming.time-limit", text=text))
        return cls(minutes, time.monotonic() + minutes * 60.0)

    @property
    def left(self) -> float:
        """The remaining seconds, 0 once it has passed."""
        return max(0.0, self.ends - time.monotonic())

    def __str__(self) -> str:
        return f"the time limit of {self.minutes:g} minutes"


_STANDARD_INPUT: Final = 0
# Of what termios.tcgetattr returns.
_INPUT, _LOCAL, _KEYS = 0, 3, 6


@dataclass(frozen=True)
class Terminal:
    """What a command has as standard input (None: as this process) and output; `keys`, if any, is the other side."""

    input: int | None
    output: int
    keys: int | None = None

    def send(self, process: subprocess.Popen[Any], number: signal.Signals) -> None:
        """Send a signal; who reads keys gets Ctrl-C as one, which ends a prompt without a lock."""
        if number == signal.SIGINT and self.keys and not termios.tcgetattr(self.keys)[_LOCAL] & termios.ISIG:
            os.write(self.keys, b"\x03")
        else:
            process.send_signal(number)


@contextmanager
def terminal_for(output: int) -> Iterator[Terminal]:
    """The terminal of a command that prints to `output`; without a person there, `output` itself.

    In the block the person's terminal passes every key on at once, but for Ctrl-C.
    """
    if not os.isatty(_STANDARD_INPUT) or not os.isatty(output):
        # In the background it would be stopped when it reads; behind a pipe, the keys are another program's.
        yield Terminal(subprocess.DEVNULL if os.isatty(_STANDARD_INPUT) else None, output)
        return
    keys, side = pty.openpty()
    ended, end = os.pipe()
    before, flags = (termios.tcgetattr(_STANDARD_INPUT) for _ in range(2))
    flags[_INPUT] &= ~termios.ICRNL
    flags[_LOCAL] &= ~(termios.ECHO | termios.ICANON)
    flags[_KEYS][termios.VQUIT] = flags[_KEYS][termios.VSUSP] = b"\0"
    _resize(keys)
    relay = threading.Thread(target=_relay, args=(keys, output, ended), daemon=True)
    relay.start()
    try:
        termios.tcsetattr(_STANDARD_INPUT, termios.TCSADRAIN, flags)
        yield Terminal(side, side, keys)
    finally:
        os.close(side)
        os.close(end)
        relay.join()
        termios.tcsetattr(_STANDARD_INPUT, termios.TCSADRAIN, before)
        os.close(ended)
        os.close(keys)


def _relay(keys: int, output: int, ended: int) -> None:
    """Copy between the terminals until `ended` is closed at its other end, and everything is shown."""
    sources = {_STANDARD_INPUT: keys, keys: output, ended: ended}
    while True:
        ready = select.select(sources, [], [])[0]
        _resize(keys)
        for source in ready:
            if source != ended and not _copy(source, sources[source]):
                del sources[source]
        if ready == [ended]:
            return


def _resize(keys: int) -> None:
    with suppress(termios.error):
        termios.tcsetwinsize(keys, termios.tcgetwinsize(_STANDARD_INPUT))


def _copy(source: int, target: int) -> bool:
    """Copy what is there; returns False at the end."""
    with suppress(OSError):
        piece = os.read(source, 1 << 16)
        left = piece
        while left:
            left = left[os.write(target, left) :]
        return bool(piece)
    return False
