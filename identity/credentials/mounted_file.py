"""The credential file that the Secrets Store CSI driver mounts: reading it, and noticing that it is another one now.

The driver writes a new directory and renames the `..data` link, which a watch on the file's inode never sees: the
directory is watched.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import watchfiles
from azure.identity import CredentialUnavailableError

from identity.credentials import document, rfc3339
from identity.credentials.document import Credential, InvalidCredential
from identity.credentials.sign_in import Clock

_LOG: Final = logging.getLogger(__name__)

# As upstream: the file is read again this long after it was last read, even if nothing was seen to change.
BACKSTOP: Final = timedelta(hours=6)

# How often one looks besides the watch, which is lost with a remount or never granted (inotify limits); as often it is
# seen that a pause is over.
_LOOK_EVERY: Final = timedelta(seconds=1)
# Changes closer together than this are one change: a link swap is several. watchfiles wakes up as often, all the time.
_SETTLE: Final = timedelta(milliseconds=250)


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

        Raises CredentialUnavailableError if it cannot be read, `InvalidCredential` if it cannot be used or expired.
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
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def check_expiry(credential: Credential, now: datetime) -> None:
    """Raises `InvalidCredential` if `credential` does not work any more."""
    if credential.expires <= now:
        raise InvalidCredential(
            [
                f"not_after: found a credential that expired at {rfc3339.render(credential.expires)} "
                f"(certificate {credential.thumbprint}); accepted: one that is still valid; renew it"
            ]
        )


def changes(directory: Path, stop: threading.Event) -> Iterator[None]:
    """One item for each change in `directory`, and one every second whatever happens, until `stop` is set."""
    is_told = False
    while not stop.is_set():
        try:
            for _ in watchfiles.watch(
                directory,
                watch_filter=None,
                recursive=False,
                step=_milliseconds(_SETTLE),
                debounce=_milliseconds(_LOOK_EVERY),
                rust_timeout=_milliseconds(_LOOK_EVERY),
                yield_on_timeout=True,
                stop_event=stop,
            ):
                yield
        except Exception as error:  # OSError and RuntimeError are known; no other one may end the watch either
            if not is_told:
                _LOG.warning("directory %s cannot be watched (%s): looking once a second", directory, error)
            is_told = True
            stop.wait(_LOOK_EVERY.total_seconds())
            yield


def _milliseconds(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
