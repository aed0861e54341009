"""Why the store could not be read or written, in words for the user of the local cloud.

- `StoreError`: each of them has the HTTP status and code with which the services answer.
  - `StoreNotWrittenError`: the disk does not take it; nothing of the write has happened, and reads go on.
  - `StoreDamagedError`: the file is damaged.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

_WHAT_TO_DO: Final = {
    errno.ENOSPC: "free some space",
    errno.EROFS: "make its disk writable again",
}
# SQLite's primary result codes (sqlite.org/rescode.html).
_NOT_WRITTEN: Final = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
}
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class StoreError(Exception):
    """The store could not be read or written; the message names its file, the reason and what helps."""

    status: ClassVar[int]
    code: ClassVar[str]


class StoreNotWrittenError(StoreError):
    """The disk does not take a write: it is full, read-only or broken. `number` is errno(3)."""

    status = 507  # RFC 4918 11.5: Insufficient Storage, which no client of Azure repeats by itself
    code = "InsufficientStorage"

    def __init__(self, file: Path, number: int) -> None:
        what = _WHAT_TO_DO.get(number, "look after its disk")
        super().__init__(f"{file} cannot be written ({os.strerror(number)}); nothing was changed. To go on, {what}")
        self.number = number


class StoreDamagedError(StoreError):
    """The file is damaged: truncated, or overwritten."""

    status = 500
    code = "StoreDamagedError"

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"{file} is damaged ({reason}): put a copy of the file back, or remove this local cloud with "
            "`localcloud stop --remove` and start again, which loses what was in it"
        )


@contextmanager
def in_words(file: Path) -> Iterator[None]:
    """Raise `StoreNotWrittenError` or `StoreDamagedError` for what SQLite, or the system, says of `file` within the
    block.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if primary in _NOT_WRITTEN:
            raise StoreNotWrittenError(file, _NOT_WRITTEN[primary]) from None
        if primary in _DAMAGED:
            raise StoreDamagedError(file, str(error)) from None
        raise
    except OSError as error:
        raise StoreNotWrittenError(file, error.errno or errno.EIO) from None
