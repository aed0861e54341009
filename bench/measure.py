"""Running commands and reading what they cost: the kernel's own account, not the clock of a busy machine."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Cost:
    """Of a process and every descendant that was waited for: CPU in seconds; `peak` is the largest one's memory, in MB.

    `wall` is the time that went by, in seconds.
    """

    user: float
    system: float
    wall: float
    peak: float

    @property
    def cpu(self) -> float:
        """User and system time."""
        return self.user + self.system


class CommandFailed(Exception):
    """A measured command ended with an error; the message has what it printed."""


def run(command: Sequence[str], *, directory: Path, environment: Mapping[str, str]) -> Cost:
    """Run a command to its end; raises CommandFailed."""
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
            raise CommandFailed(f"{' '.join(command)}: code {process.returncode}\n{output.read().decode()[-4000:]}")
    return Cost(usage.ru_utime, usage.ru_stime, wall, usage.ru_maxrss / 1024)


def in_turn(times: int, *measures: Callable[[], Measured]) -> list[list[Measured]]:
    """Call the measures one after another, A B A B ..., so that a slow moment hits all; the results by measure."""
    rounds = [[measure() for measure in measures] for _ in range(times)]
    return [list(results) for results in zip(*rounds, strict=True)]
