"""Caches tokens between calls of `idstack token`, and allows one sign-in at a time for each login on this machine.

Each login has a file, named by a digest of everything that identifies it and its credential, so another certificate or
secret never gets an earlier one's token. Files are 0600 in a directory 0700; a lock file beside each makes processes
that start together (kubectl, the engine's plugins, Helm) wait for one request instead of sending one each.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from identity.aks.login import Login
from identity.azure.errors import LoginRefusedError
from identity.private_files import write_private

CACHE_VARIABLE: Final = "IDSTACK_TOKEN_CACHE"
# A token near its end is useless for a long request. Clients ask again at the time that the answer names.
_MARGIN: Final = timedelta(minutes=5)


@dataclass(frozen=True)
class Token:
    """A bearer token and, in UTC, its last second and the time from which a new one is requested."""

    value: str = field(repr=False)
    expires: datetime
    renew_at: datetime

    @classmethod
    def issued(cls, value: str, *, now: datetime, expires_on: int) -> Token:
        """A new token; one with a short lifetime is renewed half-way."""
        expires = datetime.fromtimestamp(expires_on, UTC)
        return cls(value, expires, expires - min(_MARGIN, (expires - now) / 2))


def directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where tokens are kept unless a directory is given: IDSTACK_TOKEN_CACHE, or below XDG_CACHE_HOME or `~/.cache`."""
    if own := environ.get(CACHE_VARIABLE):
        return Path(own)
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "idstack" / "tokens"


def key_of(login: Login, fingerprint: str) -> str:
    """The name of a login's files. `fingerprint` identifies its credential."""
    document = json.dumps({**asdict(login), "fingerprint": fingerprint}, sort_keys=True, default=str)
    return hashlib.sha256(document.encode()).hexdigest()


class TokenCache:
    """Tokens in `root`, which is created when needed.

    Raises LoginRefusedError if that fails, and for a directory that others may use.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def token(self, key: str, now: Callable[[], datetime], request: Callable[[], Token]) -> Token:
        """The token under `key`, or a new one from `request` if there is no usable one."""
        with self.locked(key):
            token = self._good(key, now)
            if token is None:
                token = request()
                dates = {"expires": token.expires.isoformat(), "renewAt": token.renew_at.isoformat()}
                self.write(f"{key}.token", json.dumps({"token": token.value, **dates}))
            return token

    def read(self, name: str) -> str | None:
        """The content of a file, None if there is none; a symbolic link does not count."""
        try:
            descriptor = os.open(self._root / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return None
            raise
        with os.fdopen(descriptor, encoding="utf-8") as file:
            return file.read()

    def write(self, name: str, text: str) -> None:
        """Replace a file in one step, 0600."""
        write_private(self._root / name, text)

    def _good(self, key: str, now: Callable[[], datetime]) -> Token | None:
        try:
            document = json.loads(self.read(f"{key}.token") or "null")
            dates = (datetime.fromisoformat(document[name]) for name in ("expires", "renewAt"))
            token = Token(document["token"], *dates)
        except (ValueError, TypeError, KeyError):
            return None  # there is none, or a partial file, after a power failure
        return None if token.renew_at <= now() else token

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Hold the key's lock, for one sign-in at a time."""
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._require_private()
            lock = os.open(self._root / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = "a link stands there" if error.errno == errno.ELOOP else error.strerror
            raise LoginRefusedError(
                f'tokens cannot be kept in "{self._root}" ({reason}); name another directory with --cache-dir'
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _require_private(self) -> None:
        """A user who may write into the directory could choose which token is used, and which file a lock opens."""
        status = self._root.stat()
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise LoginRefusedError(
                f'tokens are not kept in "{self._root}": it must be a directory of this user with mode 0700 '
                f"(found: user {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}); `chmod 700 "
                f"{shlex.quote(str(self._root))}` if it is yours, or name another directory with --cache-dir"
            )
