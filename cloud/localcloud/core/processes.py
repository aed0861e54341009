"""The record of this local cloud's processes, so that `stop` ends all of them and no other process.

Each one is a file `<state dir>/pids/<name>.json` with process id and start time; a recycled id has another start time.
Linux only: start times come from /proc, and a pidfd (pidfd_open(2)) names one process for good.
"""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localcloud.core.files import opened

# The pauses between tries of something that failed.


def growing_pauses(first: float, longest: float) -> Iterator[float]:
    """Seconds before each next try: `first`, then twice the one before, at most `longest`."""
    while True:
        yield first
        first = min(first * 2, longest)


# proc_pid_stat(5), fields 6 and 22, counted from the state that follows the command's name
_SESSION = 3
_START_TIME = 19
_KILLED_WITHIN = 5.0


@dataclass(frozen=True)
class RecordedProcess:
    """A recorded process; `started` is its start time in clock ticks since boot, with the boot's id."""

    file: Path
    pid: int
    started: str

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return start_time(self.pid) == self.started

    def end(self, *, grace: float) -> bool:
        """Send SIGTERM, SIGKILL after `grace` seconds, and remove the record.

        Returns whether it was alive. A process that merely has the same id is left alone.
        """
        try:
            with suppress(ProcessLookupError), opened(os.pidfd_open(self.pid)) as handle:
                # Checked after opening: from here on the handle cannot refer to another process.
                if self.is_alive():
                    signal.pidfd_send_signal(handle, signal.SIGTERM)
                    if not select.select([handle], [], [], grace)[0]:
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                        select.select([handle], [], [], _KILLED_WITHIN)
                    return True
            return False
        finally:
            self.file.unlink(missing_ok=True)


def start_time(pid: int) -> str | None:
    """Boot id and start time, which identify a process beyond its id; None when it is gone or a zombie."""
    if (fields := _fields(pid)) is None:
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{fields[_START_TIME]}"


def processes_of(session: int) -> list[int]:
    """The ids of a session's processes."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return [pid for pid in pids if (fields := _fields(pid)) is not None and fields[_SESSION] == str(session)]


def _fields(pid: int) -> list[str] | None:
    """What /proc says of a process, from its state on; None when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields


def record(pids: Path, name: str, pid: int) -> RecordedProcess:
    """Record a living process under `name`, over an earlier record; raises ProcessLookupError when it is gone."""
    started = start_time(pid)
    if started is None:
        raise ProcessLookupError(f"no process {pid}")
    pids.mkdir(mode=0o700, exist_ok=True)
    file = pids / f"{name}.json"
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps({"pid": pid, "startTime": started}))
    draft.replace(file)
    return RecordedProcess(file, pid, started)


def alive(pids: Path, name: str) -> RecordedProcess | None:
    """The process recorded under this name, if it runs."""
    file = pids / f"{name}.json"
    try:
        document = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None  # cut off by a loss of power, which has ended the process, too
    process = RecordedProcess(file, document["pid"], document["startTime"])
    return process if process.is_alive() else None
