"""The lock on a stack: its owner, whether that process still runs, and the remedy.

An owner is a process of this machine only if this machine has recorded it: containers and other machines may have the
same host name and process id. A file or blob backend keeps a lock file until its engine
deletes it, so a killed engine leaves one behind (pulumi/pulumi `pkg/backend/diy/lock.go`). Pulumi Cloud does not report
the owners of its locks.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from identity.credentials import rfc3339
from ops.stack.environment import is_local, pulumi_home
from ops.stack.errors import CommandError, message
from ops.stack.stack_document import backend_folder, replace_file

_OWNER: Final = re.compile(
    r": created by (?P<user>.+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)$", re.MULTILINE
)
_FILE: Final = re.compile(r"/\.pulumi/locks/organization/[^/\s]+/(?P<stack>[^/\s]+)/[^/\s]+\.json")


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

    `engines` are those that this machine has started for it. `unreadable` are truncated locks, of engines that ended on
    a full disk or at a loss of power.
    """

    def __init__(
        self, owners: Sequence[Owner], engines: StartedEngines, command: str, unreadable: Sequence[Path] = ()
    ) -> None:
        stack, settled = engines.stack, settling(engines.stack, command)
        running = {owner: owner_runs(owner, engines, is_local=is_local(stack)) for owner in owners}
        elsewhere = [owner for owner, is_running in running.items() if is_running is None]
        alive = [owner for owner, is_running in running.items() if is_running]
        self.is_abandoned = bool(owners or unreadable) and not alive and not elsewhere
        """Whether every owner is known and none of them runs any more."""
        self.is_unseen = not alive and not self.is_abandoned
        """Whether a process that this machine cannot see may hold the lock, and no known owner runs."""
        names = ", ".join(map(str, alive or elsewhere or owners)) or "another update"
        if alive:
            said = f"the stack {stack} is locked by {names}, which still runs; wait until it ends"
        elif unreadable:
            said = message("lock.truncated", stack=stack, files=", ".join(map(str, unreadable)), settled=settled)
        elif self.is_abandoned:
            said = f"the stack {stack} is still locked by {names}, which was killed. {settled}"
        else:
            is_of_this_host = any(owner.is_of_this_host for owner in elsewhere)
            why = message("lock.not-recorded" if is_of_this_host else "lock.not-seen")
            said = message("lock.elsewhere", stack=stack, names=names, why=why, recover=_recover(stack, command))
        super().__init__(said)


def settling(stack: str, command: str) -> str:
    """What to do after a killed run of this command of the engine, and its effect."""
    then = f"; then run `.venv/bin/idstack down --stack {stack}` again" if command == "destroy" else ", and runs `up`"
    return f"`{_recover(stack, command)}` unlocks the stack and settles interrupted operations{then}"


def _recover(stack: str, command: str) -> str:
    # A person who interrupted a `destroy` does not want the stack up again.
    return f".venv/bin/idstack recover --stack {stack}{' --no-up' if command == 'destroy' else ''}"


def is_locked(errors: str) -> bool:
    return "the stack is currently locked by" in errors or "Another update is currently in progress" in errors


def owners(errors: str) -> list[Owner]:
    """The owners that the engine's standard error names; none for Pulumi Cloud."""
    return [Owner(match["user"], match["host"], int(match["pid"]), match["since"]) for match in _OWNER.finditer(errors)]


def stack_of(errors: str) -> str | None:
    """The bare name of the stack whose lock the engine's standard error names; None if it names none."""
    match = _FILE.search(errors)
    return match["stack"] if match else None


def truncated_locks(backend: str | None, stack: str) -> list[Path]:
    """The locks of the stack in a backend of files that an engine could not write."""
    folder = backend_folder(backend)
    return [] if folder is None else sorted(file for file in folder.glob(f"locks/*/*/{stack}/*") if not _is_lock(file))


def _is_lock(file: Path) -> bool:
    try:
        return bool(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return True  # its engine has ended meanwhile
    except ValueError:
        return False


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
    return name == "pulumi" and fields.split()[0] not in "ZX"


# Fields of `/proc/<pid>/stat` behind the name (proc_pid_stat(5)): state, and starttime, the 22nd of all.
_STATE, _START_TIME = 0, 19
# A lock names whole seconds.
_TOLERANCE: Final = timedelta(seconds=1)


@dataclass(frozen=True)
class StartedEngine:
    """One engine: when this program started it and, once known, when it ended (RFC 3339)."""

    stack: str
    pid: int
    ticks: str
    began: str
    ended: str | None
    host: str
    boot: str
    namespace: str
    machine: str

    def is_owner(self, pid: int, host: str, since: datetime) -> bool:
        """Whether a lock of this process id on this host was taken while the engine ran."""
        begins, ends = rfc3339.parse(self.began), self.ended and rfc3339.parse(self.ended)
        is_within = begins - _TOLERANCE <= since and (not ends or since <= ends + _TOLERANCE)
        return (self.pid, self.host) == (pid, host) and is_within

    def runs(self, *, is_local: bool) -> bool | None:
        """Whether it still runs; None if this machine cannot tell.

        `is_local`: only this machine uses the stack's backend, so that after a restart none of its engines runs.
        """
        here = _here()
        if self.ended is not None:
            return False
        if self.boot != here["boot"]:
            return False if is_local or (self.machine == here["machine"] != "") else None
        return _ticks(self.pid) == self.ticks if self.namespace == here["namespace"] else None


class StartingEngine:
    """Records one engine from its start to its end."""

    def __init__(self, engines: StartedEngines) -> None:
        self._engines = engines
        self._began = datetime.now(UTC)
        self._started: StartedEngine | None = None

    def begin(self, pid: int) -> None:
        if (ticks := _ticks(pid)) is not None:
            began = rfc3339.render(self._began)
            self._started = StartedEngine(self._engines.stack, pid, ticks, began, None, **_here())
            self._engines.write(self._started)

    def end(self, *, may_have_lock: bool) -> None:
        """Record the end of the engine, or forget it if it cannot have left its lock behind."""
        if self._started is None:
            return
        if may_have_lock:
            self._engines.write(replace(self._started, ended=rfc3339.render(datetime.now(UTC))))
        else:
            self._engines.remove(self._started)


@dataclass(frozen=True)
class StartedEngines:
    """The engines of one stack, by its bare name, whose records are in `folder`."""

    folder: Path
    stack: str

    @classmethod
    def of(cls, stack: str, environment: Mapping[str, str]) -> StartedEngines:
        """The engines of a stack whose commands have this environment."""
        return cls(pulumi_home(environment) / "idstack-engines", stack.rpartition("/")[2])

    def forget(self) -> None:
        """Forget the engines that have ended: another engine got the lock, so none of them has it."""
        for engine in self.all():
            if engine.runs(is_local=False) is False:
                self.remove(engine)

    def find(self, pid: int, host: str, since: str) -> StartedEngine | None:
        """The engine that locked the stack at this moment (RFC 3339); None without a matching record."""
        try:
            moment = rfc3339.parse(since)
        except ValueError:
            return None
        return next((engine for engine in self.all() if engine.is_owner(pid, host, moment)), None)

    def all(self) -> Iterator[StartedEngine]:
        for file in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            # Another command may remove it meanwhile, and a loss of power may leave it empty.
            with suppress(OSError, ValueError, TypeError):
                engine = StartedEngine(**json.loads(file.read_text(encoding="utf-8")))
                if engine.stack == self.stack:
                    yield engine

    def remove(self, started: StartedEngine) -> None:
        with suppress(OSError):
            self._file(started).unlink()

    def write(self, started: StartedEngine) -> None:
        """Record an engine.

        A failure is ignored: without a record, a person is asked before the engine's lock is removed.
        """
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._file(started), json.dumps(asdict(started)))

    def _file(self, started: StartedEngine) -> Path:
        return self.folder / f"{started.stack}-{started.pid}-{started.ticks}.json"


def _here() -> dict[str, str]:
    """The scope of a process id; an empty text where the system does not tell."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    boot, machine = (_read_stripped(Path(file)) for file in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"))
    return {"host": socket.gethostname(), "boot": boot, "namespace": namespace, "machine": machine}


def _read_stripped(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _ticks(pid: int) -> str | None:
    """When a process began, in ticks since the boot; None if it has ended, or where the system does not tell."""
    fields = _read_stripped(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return None if not fields or fields[_STATE] in "ZX" else fields[_START_TIME]
