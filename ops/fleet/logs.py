"""What `idstack fleet up` leaves on this machine: the output of each stack's last run, and why it failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from ops.stack.stack_document import replace_file

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
        """Note that the run has failed."""
        replace_file(self._failure, reason)

    def failure(self) -> FailedRun | None:
        """The last run on this machine, if that failed."""
        try:
            at, reason = self._failure.stat().st_mtime, self._failure.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return FailedRun(datetime.fromtimestamp(int(at), UTC), reason)
