"""Runs commands and reads what they cost: CPU and memory as the kernel counts them, not the clock of a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Cost:
    """What a process and all descendants that were waited for cost.

    `user`, `system` and `wall` (from begin to end) are in seconds; `peak` is the largest process's memory, in MB.
    """

    user: float
    system: float
    wall: float
    peak: float

    @property
    def cpu(self) -> float:
        """User and system time."""
        return self.user + self.system


class CommandFailedError(Exception):
    """A measured command failed; the message has the end of its output."""


def run(command: Sequence[str], *, directory: Path, environment: Mapping[str, str]) -> Cost:
    """Run a command to its end; raises CommandFailedError if its exit code is not 0."""
    with TemporaryFile() as output:
        begun = time.monotonic()
        process = subprocess.Popen(
            command, cwd=directory, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            raise CommandFailedError(
                f"{' '.join(command)}: code {process.returncode}\n{output.read().decode()[-4000:]}"
            )
    return Cost(usage.ru_utime, usage.ru_stime, wall, usage.ru_maxrss / 1024)


def in_turn(times: int, *measures: Callable[[], Measured]) -> list[list[Measured]]:
    """Call the measures one after another, A B A B ..., so that a slow moment hits all; the results by measure."""
    rounds = [[measure() for measure in measures] for _ in range(times)]
    return [list(results) for results in zip(*rounds, strict=True)]


def bare_interpreter() -> float:
    """The CPU seconds of an interpreter that does nothing."""
    return run([sys.executable, "-c", "pass"], directory=Path.cwd(), environment=os.environ).cpu
