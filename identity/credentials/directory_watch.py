"""Detects changes in the directory of a mounted credential.

The CSI driver writes a new directory and renames the `..data` link, which a watch on the file's inode never sees, so
the directory is watched. The kernel reports changes; between them only a check every few seconds runs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from watchdog.events import (
    DirModifiedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

_LOG: Final = logging.getLogger(__name__)

# The watch may be lost with a remount, or never be granted (inotify limits), so the directory is checked as well.
_CHECK_EVERY: Final = timedelta(seconds=5)
# The same while a candidate waits for its next attempt.
_CHECK_OFTEN: Final = timedelta(milliseconds=500)
# Changes closer together than this are one change: a link swap is several.
_SETTLE: Final = timedelta(milliseconds=50)

# A file that is created, deleted or renamed modifies the directory. Opening and reading are not changes.
_EVENTS: Final[list[type[FileSystemEvent]]] = [DirModifiedEvent, FileModifiedEvent, FileDeletedEvent]


class DirectoryWatch:
    """A watch of `directory`, which may be missing, and may be replaced or mounted over while it is watched."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._is_reported = False

    def stop(self) -> None:
        """End `changes`, in any thread."""
        self._stopped.set()
        self._woken.set()

    def changes(self, is_pending: Callable[[], bool]) -> Iterator[None]:
        """One item when the watch begins, one for each change, and one every five seconds whatever happens, every half
        second while `is_pending()`; it ends with `stop`.
        """
        while not self._stopped.is_set():
            # Taken before the watch begins: a directory that replaces it meanwhile is watched after the first check.
            watched = self._identify()
            try:
                with self._watched():
                    yield
                    while self._identify() == watched and self._wait(is_pending):
                        yield
            except Exception as error:  # OSError is expected; no other one may end the watch either
                self._report(error)
                if self._wait(is_pending):
                    yield

    @contextmanager
    def _watched(self) -> Iterator[None]:
        observer = Observer()
        try:
            observer.schedule(_Waker(self._woken), str(self._directory), event_filter=_EVENTS)
            observer.start()
            yield
        finally:
            # An observer that could not start holds a descriptor and a thread as well.
            observer.stop()
            if observer.is_alive():
                observer.join()

    def _wait(self, is_pending: Callable[[], bool]) -> bool:
        """Wait for a change, the next check or the end; returns false at the end."""
        pause = _CHECK_OFTEN if is_pending() else _CHECK_EVERY
        if self._woken.wait(pause.total_seconds()):
            self._stopped.wait(_SETTLE.total_seconds())
            self._woken.clear()
        return not self._stopped.is_set()

    def _identify(self) -> tuple[int, int] | None:
        try:
            status = self._directory.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _report(self, error: Exception) -> None:
        if not self._is_reported:
            _LOG.warning("directory %s cannot be watched (%s): checking every few seconds", self._directory, error)
        self._is_reported = True


class _Waker(FileSystemEventHandler):
    def __init__(self, woken: threading.Event) -> None:
        self._woken = woken

    def on_any_event(self, event: FileSystemEvent) -> None:
        self._woken.set()
