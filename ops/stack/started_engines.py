"""Which engines this machine has started for a stack: a lock names user, host and process id, and another machine, or
another container of this one, may have equal ones.

A file for each engine in its PULUMI_HOME, on this machine: boot, pid namespace, and the moment that the process began,
in ticks since the boot. Decision record 0023.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from identity.credentials import rfc3339
from ops.stack import files

_FOLDER: Final = "idstack-engines"
# Of `/proc/<pid>/stat` behind the name (proc_pid_stat(5)): state, and starttime, the 22nd field of all.
_STATE, _START_TIME = 0, 19
# A lock names whole seconds.
_WITHIN: Final = timedelta(seconds=1)


@dataclass(frozen=True)
class _Machine:
    """Where a process id means something; empty where the system does not tell."""

    host: str
    boot: str
    namespace: str
    machine: str


@dataclass(frozen=True)
class StartedEngine:
    """One engine: when this program began to start it and, once that has seen its end, when it ended (RFC 3339)."""

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
        is_within = begins - _WITHIN <= since and (not ends or since <= ends + _WITHIN)
        return (self.pid, self.host) == (pid, host) and is_within

    def runs(self, *, is_local: bool) -> bool | None:
        """Whether it still runs; None if that cannot be seen from here.

        `is_local`: nobody but this machine uses the stack's backend, so after a restart none of its engines runs.
        """
        here = _here()
        if self.ended is not None:
            return False
        if self.boot != here.boot:
            return False if is_local or (self.machine == here.machine != "") else None
        return _ticks(self.pid) == self.ticks if self.namespace == here.namespace else None


class StartingEngine:
    """Records one engine from its start to its end."""

    def __init__(self, engines: StartedEngines) -> None:
        self._engines = engines
        self._began = datetime.now(UTC)
        self._started: StartedEngine | None = None

    def begin(self, pid: int) -> None:
        """The engine has this process id now."""
        if (ticks := _ticks(pid)) is not None:
            began = rfc3339.render(self._began)
            self._started = StartedEngine(self._engines.stack, pid, ticks, began, None, **asdict(_here()))
            self._engines.write(self._started)

    def end(self, *, may_have_lock: bool) -> None:
        """The engine has ended; it is forgotten unless it may have left its lock behind."""
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
    def of(cls, stack: str, environment: dict[str, str]) -> StartedEngines:
        """Those of a stack whose commands have this environment."""
        home = Path(environment.get("PULUMI_HOME") or Path.home() / ".pulumi")
        return cls(home / _FOLDER, stack.rpartition("/")[2])

    def starting(self) -> StartingEngine:
        """For an engine that is started now."""
        return StartingEngine(self)

    def forget(self) -> None:
        """Forget those that do not run: the stack was free for another engine, so none of them has a lock."""
        for each in self.all():
            if each.runs(is_local=False) is False:
                self.remove(each)

    def find(self, pid: int, host: str, since: str) -> StartedEngine | None:
        """The engine that locked the stack at this moment (RFC 3339); None if no record is surely its own."""
        try:
            moment = rfc3339.parse(since)
        except ValueError:
            return None
        return next((each for each in self.all() if each.is_owner(pid, host, moment)), None)

    def all(self) -> Iterator[StartedEngine]:
        """Every engine with a record."""
        for file in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            # Another command of this machine may remove it meanwhile, and a loss of power may leave it empty.
            with suppress(OSError, ValueError, TypeError):
                found = StartedEngine(**json.loads(file.read_text(encoding="utf-8")))
                if found.stack == self.stack:
                    yield found

    def remove(self, started: StartedEngine) -> None:
        """Forget an engine."""
        with suppress(OSError):
            self._file(started).unlink()

    def write(self, started: StartedEngine) -> None:
        """Record an engine.

        A run goes on if that fails: for an engine without a record, a person is asked before its lock is taken away.
        """
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.replace(self._file(started), json.dumps(asdict(started)))

    def _file(self, started: StartedEngine) -> Path:
        return self.folder / f"{started.stack}-{started.pid}-{started.ticks}.json"


def _here() -> _Machine:
    return _Machine(
        host=socket.gethostname(),
        boot=_read(Path("/proc/sys/kernel/random/boot_id")),
        namespace=_namespace(),
        machine=_read(Path("/etc/machine-id")),
    )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _ticks(pid: int) -> str | None:
    """When a process began, in ticks since the boot; None if it has ended, or where the system does not tell."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return None if not fields or fields[_STATE] in "ZX" else fields[_START_TIME]
