"""Records the engines that this machine starts for a stack: the user, host and process id in a lock are not unique
across machines and containers.

Each engine has a file in its PULUMI_HOME on this machine, with boot id, pid namespace, and the process's start in ticks
since the boot. Decision record 0023.
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
from ops.stack.environment import pulumi_home

_FOLDER: Final = "idstack-engines"
# Fields of `/proc/<pid>/stat` behind the name (proc_pid_stat(5)): state, and starttime, the 22nd of all.
_STATE, _START_TIME = 0, 19
# A lock names whole seconds.
_TOLERANCE: Final = timedelta(seconds=1)


@dataclass(frozen=True)
class _Machine:
    """The scope of a process id; empty where the system does not tell."""

    host: str
    boot: str
    namespace: str
    machine: str


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
        """Record the process id of the engine."""
        if (ticks := _ticks(pid)) is not None:
            began = rfc3339.render(self._began)
            self._started = StartedEngine(self._engines.stack, pid, ticks, began, None, **asdict(_here()))
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
    def of(cls, stack: str, environment: dict[str, str]) -> StartedEngines:
        """The engines of a stack whose commands have this environment."""
        return cls(pulumi_home(environment) / _FOLDER, stack.rpartition("/")[2])

    def starting(self) -> StartingEngine:
        """The record of a new engine."""
        return StartingEngine(self)

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
        """Every engine with a record."""
        for file in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            # Another command may remove it meanwhile, and a loss of power may leave it empty.
            with suppress(OSError, ValueError, TypeError):
                engine = StartedEngine(**json.loads(file.read_text(encoding="utf-8")))
                if engine.stack == self.stack:
                    yield engine

    def remove(self, started: StartedEngine) -> None:
        """Forget an engine."""
        with suppress(OSError):
            self._file(started).unlink()

    def write(self, started: StartedEngine) -> None:
        """Record an engine.

        A failure is ignored: without a record, a person is asked before the engine's lock is removed.
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
