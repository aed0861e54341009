"""The lock on a stack: its owner, whether that process still runs, and the remedy.

An owner is a process of this machine only if this machine has recorded it (`ops/stack/started_engines.py`): containers
and other machines may have the same host name and process id. A file or blob backend keeps a lock file until its engine
deletes it, so a killed engine leaves one behind (pulumi/pulumi `pkg/backend/diy/lock.go`). Pulumi Cloud does not report
the owners of its locks.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ops.stack.errors import CommandError
from ops.stack.started_engines import StartedEngines

_LOCKED: Final = "the stack is currently locked by"
_IN_PROGRESS: Final = "Another update is currently in progress"
_OWNER: Final = re.compile(
    r": created by (?P<user>.+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)$", re.MULTILINE
)
_FILE: Final = re.compile(r"/\.pulumi/locks/organization/[^/\s]+/(?P<stack>[^/\s]+)/[^/\s]+\.json")
_ENGINE: Final = "pulumi"


@dataclass(frozen=True)
class Owner:
    """The process that wrote a lock file; `since` is RFC 3339."""

    user: str
    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"{self.user}@{self.host} (pid {self.pid}, since {self.since})"

    @property
    def is_of_this_host(self) -> bool:
        """Whether its host has this machine's name, which is not unique."""
        return self.host == socket.gethostname()


class LockedError(CommandError):
    """A stack that another engine has locked, or a killed engine had locked.

    `engines` are those that this machine has started. `unreadable` are truncated locks, of engines that ended on a full
    disk or at a loss of power.
    """

    def __init__(
        self,
        stack: str,
        owners: Sequence[Owner],
        *,
        engines: StartedEngines,
        is_local: bool,
        command: str,
        unreadable: Sequence[Path] = (),
    ) -> None:
        self._stack = stack
        self._unreadable = unreadable
        running = {owner: owner_runs(owner, engines, is_local=is_local) for owner in owners}
        self._elsewhere = [owner for owner, is_running in running.items() if is_running is None]
        self._alive = [owner for owner, is_running in running.items() if is_running]
        self._owners = owners
        super().__init__(self._paragraph(command))

    @property
    def is_abandoned(self) -> bool:
        """Whether every owner is known and none of them runs any more."""
        return bool(self._owners or self._unreadable) and not self._alive and not self._elsewhere

    @property
    def is_unseen(self) -> bool:
        """Whether a process that this machine cannot see may hold the lock, and no known owner runs."""
        return not self._alive and not self.is_abandoned

    def _paragraph(self, command: str) -> str:
        names = ", ".join(map(str, self._alive or self._elsewhere or self._owners))
        # A person who interrupted a `destroy` does not want the stack up again.
        options = ["--no-up"] if command == "destroy" else []
        if self._alive:
            return f"the stack {self._stack} is locked by {names}, which still runs; wait until it ends"
        if self._unreadable:
            files = ", ".join(map(str, self._unreadable))
            return (
                f"the stack {self._stack} has a truncated lock ({files}): its engine ended on a full disk or at a loss "
                f"of power. {self._recover(options)} removes the lock, and continues"
            )
        if self.is_abandoned:
            return (
                f"the stack {self._stack} is still locked by {names}, which was killed. {self._recover(options)} "
                "unlocks the stack, settles interrupted operations, and continues"
            )
        return (
            f"the stack {self._stack} is locked by {names or 'another update'}, {self._unseen()}. Wait "
            f"until it ends. If you are sure that it has ended, {self._recover([*options, '--unlock'])}, or on GitHub "
            "the workflow `recover`, unlocks the stack and settles interrupted operations"
        )

    def _unseen(self) -> str:
        if any(owner.is_of_this_host for owner in self._elsewhere):
            return (
                "which idstack on this machine has no record of: it may be a run in another container, or on another "
                "machine of this name"
            )
        return "which this machine cannot see"

    def _recover(self, options: Sequence[str]) -> str:
        return f"`{' '.join(['make recover', f'STACK={self._stack}', *_argument(options)])}`"


def _argument(options: Sequence[str]) -> list[str]:
    return [f'ARGS="{" ".join(options)}"' if len(options) > 1 else f"ARGS={options[0]}"] if options else []


def is_locked(errors: str) -> bool:
    """Whether the engine's standard error reports that the stack is locked."""
    return _LOCKED in errors or _IN_PROGRESS in errors


def owners(errors: str) -> list[Owner]:
    """The owners that the engine's standard error names; none for Pulumi Cloud."""
    return [Owner(match["user"], match["host"], int(match["pid"]), match["since"]) for match in _OWNER.finditer(errors)]


def stack_of(errors: str) -> str | None:
    """The bare name of the stack whose lock the engine's standard error names; None if it names none."""
    match = _FILE.search(errors)
    return match["stack"] if match else None


def owner_runs(owner: Owner, engines: StartedEngines, *, is_local: bool) -> bool | None:
    """Whether the owner of a lock still runs; None if this machine cannot tell.

    Only this machine uses a local stack's backend, whatever its name was at the time.
    """
    recorded = engines.find(owner.pid, owner.host, owner.since)
    if recorded is not None:
        return recorded.runs(is_local=is_local)
    if is_local:
        return runs(owner.pid)
    return True if owner.is_of_this_host and runs(owner.pid) else None


def runs(pid: int) -> bool:
    """Whether the process runs and is an engine.

    The id may belong to another program by now, or to a zombie.
    """
    try:
        os.kill(pid, 0)
        name, _, fields = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    except OSError:
        return True  # not Linux: the name cannot be read
    return name == _ENGINE and fields.split()[0] not in "ZX"
