"""Detects a deadlock of the engine in its event log.

With `--continue-on-error` a failed deletion before a replacement ends the steps of its resource without an answer to
the program (pulumi/pulumi v3.259 `pkg/resource/deploy/step_executor.go`, `executeChain`). The program then waits for
the resource, and the engine for the program: forever, with the stack locked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

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
