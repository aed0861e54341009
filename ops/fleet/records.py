"""Records of `idstack fleet up` on this machine: how each stack's last run ended, and with which program.

A record only saves a run or reports a failed one; the truth about a stack is its state. A stack without a record, or
with an outdated one, is brought up.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from identity import checkout
from ops.stack import files

DIRECTORY: Final = ".fleet"
"""In the project; git ignores it."""


class Record(BaseModel):
    """How the last run of a stack ended, and when. Of a stack that is up: what it ran with (`program`, a fingerprint),
    the time of its state, and when its first certificate is due, if it issues any.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    outcome: Literal["up", "failed"]
    at: AwareDatetime
    reason: str | None = None
    program: str | None = None
    state: AwareDatetime | None = None
    due: AwareDatetime | None = None

    def holds(self, program: str, state: datetime | None, now: datetime) -> bool:
        """Whether another run would change nothing: same program, no run since, no renewal due.

        `state` is the time of the stack's state, None without one.
        """
        is_same = self.outcome == "up" and self.program == program
        is_untouched = state is not None and self.state is not None and whole(state) == whole(self.state)
        return is_same and is_untouched and (self.due is None or now < self.due)


class Records:
    """The records and logs of the fleet's stacks, in the project `root`."""

    def __init__(self, root: Path) -> None:
        self._directory = root / DIRECTORY

    def read(self, stack: str) -> Record | None:
        """The record of a stack; None without one, or none of this release's form."""
        try:
            return Record.model_validate_json(self._file(stack).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, stack: str, record: Record) -> None:
        """Replace a stack's record."""
        self._make()
        files.replace(self._file(stack), record.model_dump_json())

    def forget(self, stack: str) -> None:
        """Remove the record at the begin of a run, which outdates it."""
        self._file(stack).unlink(missing_ok=True)

    def log(self, stack: str) -> Path:
        """Where the output of the stack's last run is."""
        self._make()
        return self._directory / f"{stack}.log"

    def _file(self, stack: str) -> Path:
        return self._directory / f"{stack}.json"

    def _make(self) -> None:
        self._directory.mkdir(mode=0o700, exist_ok=True)


def fingerprint(root: Path, stack: str) -> str:
    """A hash of a stack's inputs: program, plugin, their pinned packages, configuration."""
    digest = hashlib.sha256()
    for name in checkout.deciding_paths(stack):
        for file in sorted(_files(root / name)):
            digest.update(f"{file.relative_to(root)}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def whole(moment: datetime) -> datetime:
    """A time in UTC, cut to milliseconds: the engine lists fewer digits than a state has."""
    moment = moment.astimezone(UTC)
    return moment - timedelta(microseconds=moment.microsecond % 1000)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    # A project may be made of links to another checkout's directories.
    for folder, _, names in os.walk(path, followlinks=True):
        yield from (Path(folder, name) for name in names if not name.endswith(".pyc"))
