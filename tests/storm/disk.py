"""The disk of a stack: its writes as they happen, and a loss of power between two of them.

`Writes` counts what changes in the state directory (inotify(7)). `frozen` stops every process of the stack at once, so
that the disk is what it is after exactly the writes until then. `lose_power` ends them all there, and takes from the
disk what was not synced: the tmpfs, and a part of each file that was written just before.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import struct
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from tests.harness import LocalStack
from tests.storm.processes import ENDS_WITHIN, kill, processes_of, send

_EVENT: Final = struct.Struct("iIII")  # inotify_event: watch, mask, cookie, length of the name that follows
_MODIFY, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x80, 0x100, 0x200
_IS_DIRECTORY: Final = 0x40000000
_ONLY_DIRECTORIES: Final = 0x01000000
_libc: Final = ctypes.CDLL(None, use_errno=True)
_COMMAND_ENDS_WITHIN: Final = 420.0
# What their writers sync before they go on (`localcloud/core/files.py`, `ops/stack/stack_document.py`, SQLite), and no
# command could make again: no power loss takes any of it.
_SYNCED: Final = frozenset(
    {"state.sqlite", "state.sqlite-shm", "seal.key", "ca.pem", "server.pem", "expired-server.pem", "passphrase"}
)
_STOPPED: Final = frozenset("TtZX")  # proc_pid_stat(5): stopped, traced, a zombie, dead
# proc_pid_wchan(5) of a thread that waits for its child of vfork(2) to run a program, which no stopped child does
# (kernel/fork.c; the compiler may put the first into the second).
_AWAITS_CHILD: Final = frozenset({"wait_for_vfork_done", "kernel_clone"})
_UNWRITTEN: Final = 30.0  # seconds: what is younger is not on the disk yet (proc_sys_vm(5), `dirty_expire_centisecs`)
_LOGS: Final = frozenset({".log", ".jsonl"})
_WAL: Final = "state.sqlite-wal"
_WAL_HEADER: Final = struct.Struct(">4I8s8s")  # https://sqlite.org/fileformat2.html#walformat
# Fields of the index (https://sqlite.org/walformat.html): all frames, and those that a checkpoint has begun to copy.
_FRAMES, _COPIED = 16, 128
_INDEX_HEADER_BYTES: Final = 136
_FRAME_HEADER_BYTES: Final = 24


@dataclass(frozen=True)
class Image:
    """What is on a disk before a command: files with their inodes, SQLite's log by its salts and its end in bytes."""

    files: Mapping[Path, int]
    log: tuple[bytes, int]


@dataclass
class Writes:
    """Counts the writes below a directory, logs left out; watches directories that come into being, too."""

    root: Path
    _handle: int = -1
    _watched: dict[int, Path] = field(default_factory=dict)
    _renamed: Counter[Path] = field(default_factory=Counter)

    def __enter__(self) -> Self:
        self._handle = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._handle >= 0, os.strerror(ctypes.get_errno())
        # The directory itself may be missing before the first `up` and after the last `down`.
        self._watch(self.root.parent)
        self._watch_all(self.root)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def await_write(self, number: int, process: int) -> int:
        """Return at the `number`-th write, or when the process (a pidfd) ends or hangs; tells how many happened."""
        counted, ends_at = 0, time.monotonic() + _COMMAND_ENDS_WITHIN
        while counted < number:
            ready, _, _ = select.select([self._handle, process], [], [], max(0, ends_at - time.monotonic()))
            if not ready:
                return counted
            if self._handle in ready:
                counted += self._read()
            elif process in ready:
                return counted
        return counted

    @property
    def replaced(self) -> set[Path]:
        """The files that were made by a renaming and then replaced by another."""
        return {path for path, times in self._renamed.items() if times > 1}

    def _read(self) -> int:
        content, offset, counted = os.read(self._handle, 1 << 16), 0, 0
        while offset < len(content):
            watch, mask, _, length = _EVENT.unpack_from(content, offset)
            name = content[offset + _EVENT.size : offset + _EVENT.size + length].rstrip(b"\0").decode()
            offset += _EVENT.size + length
            directory = self._watched.get(watch)
            if directory is None or not (mask & (_MODIFY | _MOVED_TO | _CREATE | _DELETE)):
                continue
            path = directory / name
            self._renamed[path] += bool(mask & _MOVED_TO)
            if mask & _IS_DIRECTORY and mask & (_CREATE | _MOVED_TO):
                self._watch_all(path)
            counted += path.is_relative_to(self.root) and path.suffix not in _LOGS
        return counted

    def _watch_all(self, directory: Path) -> None:
        if directory.is_relative_to(self.root) and not directory.is_symlink() and self._watch(directory):
            for entry in _entries(directory):
                if entry.is_dir() and entry.name != "plugins":
                    self._watch_all(entry)

    def _watch(self, directory: Path) -> bool:
        mask = _MODIFY | _MOVED_TO | _CREATE | _DELETE | _ONLY_DIRECTORIES
        watch = _libc.inotify_add_watch(self._handle, os.fsencode(directory), mask)
        if watch >= 0:
            self._watched[watch] = directory
        return bool(watch >= 0)


@contextmanager
def frozen(stack: LocalStack) -> Iterator[None]:
    """In the block no process of the stack runs; those that are still there afterwards go on."""
    stopped: set[int] = set()
    while new := set(processes_of(stack)) - stopped:  # one may have forked another before it was stopped
        for pid in new:
            send(pid, signal.SIGSTOP)
        ends_at = time.monotonic() + ENDS_WITHIN
        while running := [*filter(_runs, new)]:  # a thread that waits for its turn stops when it gets it
            assert time.monotonic() < ends_at, f"processes {running} do not stop"
            os.sched_yield()
        stopped |= new
    try:
        yield
    finally:
        for pid in stopped:
            send(pid, signal.SIGCONT)


def image(root: Path) -> Image:
    """What is below a directory now."""
    return Image({path: path.stat().st_ino for path in _files(root)}, _log(root / _WAL, _FRAMES))


def lose_power(stack: LocalStack, before: Image, replaced: Set[Path], share: float) -> str:
    """End every process of a frozen stack, and what was not on the disk; tells which file lost what.

    `before`: what was on the disk when the command began that power is lost in; `replaced`: the files that it made and
    then replaced. Of those that it wrote in the last seconds and whose writers sync nothing, the share `share` stays. A
    file that replaced another by renaming is whole: file systems write its content first (ext4's `auto_da_alloc`, the
    default).
    """
    kill(*processes_of(stack))
    run = stack.state / "run"
    if run.is_symlink():
        shutil.rmtree(run.readlink(), ignore_errors=True)
    lost, now = [], time.time()
    for path in _files(stack.state):
        status = path.stat()
        if now - status.st_mtime > _UNWRITTEN or path.name in _SYNCED or path.suffix in _LOGS:
            continue
        # Of a state, which the engine replaces whole, the earlier run's command has synced each version.
        if "stacks" in path.relative_to(stack.state).parts and before.files.get(path) == status.st_ino:
            continue
        if path not in replaced and before.files.get(path, status.st_ino) == status.st_ino:
            # A log that has begun again is longer than what counts of it.
            end = min(_log(path, _FRAMES)[1], status.st_size) if path.name == _WAL else status.st_size
            kept = min(_synced(path, before), end) if path.name == _WAL else 0
            left = status.st_size if share == 1 else kept + int((end - kept) * share)
            if left != status.st_size:
                os.truncate(path, left)
                lost.append(f"{path.relative_to(stack.state)} has {left} of {status.st_size} bytes")
    return ", ".join(lost) or "nothing"


def _synced(wal: Path, before: Image) -> int:
    """The bytes of SQLite's log that no power loss takes with `synchronous = NORMAL`, which syncs it at checkpoints.

    That is what a checkpoint has copied, or begun to copy, into the database, and what has been there for a while.
    """
    salts, copied = _log(wal, _COPIED)
    earlier, end = before.log
    return max(copied, end if salts == earlier else 0)


def _log(wal: Path, at: int) -> tuple[bytes, int]:
    """The salts of SQLite's log, and the bytes of as many frames as a field of the index beside it tells."""
    index = wal.with_name(f"{wal.name.removesuffix('-wal')}-shm")
    if not (wal.exists() and index.exists()):
        return b"", 0
    with wal.open("rb") as log:
        header = log.read(_WAL_HEADER.size)
    if len(header) < _WAL_HEADER.size:
        return b"", 0
    _, _, page, _, salts, _ = _WAL_HEADER.unpack(header)
    content = index.read_bytes()
    if len(content) < _INDEX_HEADER_BYTES:
        # Begun, with three bytes (`unixLockSharedMemory`), by a process that ended before it had read the log.
        return salts, wal.stat().st_size if at == _FRAMES else 0
    [frames] = struct.unpack_from("=I", content, at)
    return salts, _WAL_HEADER.size + frames * (_FRAME_HEADER_BYTES + page)


def _files(root: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name != "plugins"]
        yield from (path for name in files if not (path := Path(directory, name)).is_symlink() and path.exists())


def _entries(directory: Path) -> list[Path]:
    with suppress(OSError):
        return list(directory.iterdir())
    return []


def _runs(pid: int) -> bool:
    """Whether a thread of the process has neither stopped nor ended, and does not wait for a child to do something."""
    for task in _entries(Path(f"/proc/{pid}/task")):
        with suppress(OSError):  # it has ended meanwhile
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in _STOPPED and (task / "wchan").read_text() not in _AWAITS_CHILD:
                return True
    return False
