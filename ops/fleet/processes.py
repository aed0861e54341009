"""One stack's `idstack up`, in a separate process: the same command that a person types."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ops.fleet.stacks import FleetStack

# Of the log, for its last line.
_END: Final = 4096
_TAIL_LINES: Final = 20


class StackRun:
    """`idstack up --stack <name>` in the project `root`, without prompts; its output goes to `log`."""

    def __init__(self, stack: FleetStack, arguments: Sequence[str], *, root: Path, log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ops", "up", "--stack", stack.name, *arguments],
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches the fleet's command alone, which passes it on once (`ops/stack/streaming.py`).
                process_group=0,
            )

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def interrupt(self) -> None:
        """Ask it, once, to finish its operations in progress and to unlock the stack."""
        self._process.send_signal(signal.SIGINT)

    def last_line(self) -> str:
        """The newest line of its output, empty if there is none yet."""
        return (self._lines() or [""])[-1]

    def tail(self) -> str:
        """The last lines of its output."""
        return "\n".join(self._lines()[-_TAIL_LINES:])

    def _lines(self) -> list[str]:
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _END))
            text = file.read().decode(errors="replace")
        return [line.rstrip() for line in text.splitlines() if line.strip()]
