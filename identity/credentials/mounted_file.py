"""The credential file that the Secrets Store CSI driver mounts: reads it, and detects whether it has changed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from azure.identity import CredentialUnavailableError

from identity.credentials import document, rfc3339
from identity.credentials.clock import Clock
from identity.credentials.document import Credential, InvalidCredentialError

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
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def check_expiry(credential: Credential, now: datetime) -> None:
    """Raises `InvalidCredentialError` if `credential` has expired."""
    if credential.expires <= now:
        raise InvalidCredentialError(
            [
                f"not_after: found a credential that expired at {rfc3339.render(credential.expires)} "
                f"(certificate {credential.thumbprint}); accepted: one that is still valid; renew it"
            ]
        )
