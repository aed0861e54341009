"""The credential file that the Secrets Store CSI driver mounts: reads it, and detects whether it has changed."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from azure.identity import CredentialUnavailableError
from watchdog.events import (
    DirModifiedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from identity.credentials import document, rfc3339
from identity.credentials.document import Credential, InvalidCredentialError
from identity.credentials.rfc3339 import Clock

# As upstream: the file is read again this long after it was last read, even if nothing was seen to change.
BACKSTOP: Final = timedelta(hours=6)


class MountedFile:
    """The file at `path`, links followed. `clock` is used for expiry and backstop."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._identity: tuple[int, ...] | None = None
        self._read_at = clock()

    @property
    def is_due(self) -> bool:
        """Whether the file was replaced or written since it was last read, or that is `BACKSTOP` ago."""
        return self._identify() != self._identity or self._clock() - self._read_at >= BACKSTOP

    def read(self) -> Credential:
        """What the file holds now.

        Raises CredentialUnavailableError if it cannot be read, `InvalidCredentialError` if it cannot be used or
        expired.
        """
        # Taken first: a file that is replaced while it is read is due again.
        self._identity, self._read_at = self._identify(), self._clock()
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise CredentialUnavailableError(
                f"credential file {self.path}: found no readable file ({error.strerror}); "
                "check that the volume of its SecretProviderClass is mounted there and that the secret exists"
            ) from None
        credential = document.decode(content)
        check_expiry(credential, self._clock())
        return credential

    def _identify(self) -> tuple[int, ...] | None:
        """What changes when the file is replaced or written; None while there is no file."""
        status = _status(self.path)
        return status and (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def check_expiry(credential: Credential, now: datetime) -> None:
    """Raises `InvalidCredentialError` if `credential` has expired."""
    if credential.expires <= now:
        raise InvalidCredentialError(
            [
                f"not_after: found a credential that expired at {rfc3339.render(credential.expires)} "
                f"(certificate {credential.thumbprint}); accepted: one that is still valid; renew it"
            ]
        )


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
                if not self._is_reported:
                    _LOG.warning(
                        "directory %s cannot be watched (%s): checking every few seconds", self._directory, error
                    )
                self._is_reported = True
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
        status = _status(self._directory)
        return status and (status.st_dev, status.st_ino)


class _Waker(FileSystemEventHandler):
    def __init__(self, woken: threading.Event) -> None:
        self._woken = woken

    def on_any_event(self, event: FileSystemEvent) -> None:
        self._woken.set()
