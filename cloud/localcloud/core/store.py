"""All state of the local cloud: JSON documents by kind and key in one SQLite file, secret values sealed.

Several processes open the same file (the daemon, `seed`, `issue-msi`), so nothing is cached here and every write is a
transaction of its own unless `transaction()` groups several.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import BeforeValidator, ConfigDict, PlainSerializer, TypeAdapter
from pydantic.alias_generators import to_camel

from localcloud.core import files

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


# Dataclasses as documents of the store: members in camel case, dates as text, bytes as base64.

_Entry = TypeVar("_Entry")

STORED: Final = ConfigDict(alias_generator=to_camel)
"""The `__pydantic_config__` of each dataclass; those derived from it have it, too."""
StoredBytes = Annotated[
    bytes, BeforeValidator(base64.b64decode), PlainSerializer(lambda raw: base64.b64encode(raw).decode())
]
"""The type of a member with bytes."""
_adapter: Final[Callable[[type], TypeAdapter[Any]]] = cache(TypeAdapter)


def to_document(entry: object) -> Document:
    document: Document = _adapter(type(entry)).dump_python(entry, mode="json", by_alias=True)
    return document


def from_document(cls: type[_Entry], document: Document) -> _Entry:
    """The inverse of `to_document`; a member that the document lacks has its default."""
    entry: _Entry = _adapter(cls).validate_python(document)
    return entry


Document = dict[str, Any]
"""A JSON object."""

SEAL_KEY_BYTES = 32
_NONCE_BYTES = 12  # NIST SP 800-38D: 96 bits is the recommended length for AES-GCM
_BEYOND_EVERY_KEY = chr(0x10FFFF)
_SCHEMA = """CREATE TABLE IF NOT EXISTS documents (
    kind TEXT, key TEXT, document TEXT NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID"""


class Store:
    """Documents in `path`, opened or created; usable from several threads.

    Every method raises `StoreDamagedError` for a damaged file; those that write raise
    `StoreNotWrittenError` if the disk does not take it, and nothing of it, or of the transaction it is in, has happened
    then.

    Args:
        path: the SQLite file; created with mode 0600.
        seal_key: 32 bytes (see `seal_key`); a store sealed with another key raises ValueError on `unseal`.
    """

    def __init__(self, path: Path, seal_key: bytes) -> None:
        self._path = path
        self._cipher = AESGCM(seal_key)
        self._lock = threading.RLock()
        self._depth = 0
        self._disk_error: Callable[[], int | None] = lambda: None
        with in_words(path):
            path.touch(mode=0o600, exist_ok=True)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(_SCHEMA)

    def check(self) -> None:
        """Read all of the file; raises `StoreDamagedError`."""
        with self._lock, in_words(self._path):
            results = [row[0] for row in self._connection.execute("PRAGMA quick_check(1)").fetchall()]
        if results != ["ok"]:
            raise StoreDamagedError(self._path, "; ".join(results))

    def fail_writes(self, disk_error: Callable[[], int | None]) -> None:
        """Let every write fail for as long as `disk_error` returns an error (errno(3)), as if it were the disk's."""
        self._disk_error = disk_error

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def get(self, kind: str, key: str) -> Document | None:
        with self._lock, in_words(self._path):
            row = self._connection.execute(
                "SELECT document FROM documents WHERE kind = ? AND key = ?", (kind, key)
            ).fetchone()
        return None if row is None else json.loads(row[0])

    def listed(self) -> list[tuple[str, str]]:
        """Kind and key of every document, in their order."""
        with self._lock, in_words(self._path):
            return self._connection.execute("SELECT kind, key FROM documents ORDER BY kind, key").fetchall()

    def put(self, kind: str, key: str, document: Document) -> None:
        """Write the document, over an earlier one if there is one."""
        text = json.dumps(document, separators=(",", ":"))
        with self._lock, self._writing():
            self._connection.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", (kind, key, text))

    def delete(self, kind: str, key: str) -> bool:
        """Remove the document; returns whether there was one."""
        with self._lock, self._writing():
            cursor = self._connection.execute("DELETE FROM documents WHERE kind = ? AND key = ?", (kind, key))
        return cursor.rowcount > 0

    def items(self, kind: str, prefix: str = "") -> list[tuple[str, Document]]:
        """Every (key, document) of the kind whose key begins with `prefix`, in the order of the keys."""
        with self._lock, in_words(self._path):
            rows = self._connection.execute(
                "SELECT key, document FROM documents WHERE kind = ? AND key >= ? AND key < ? ORDER BY key",
                (kind, prefix, prefix + _BEYOND_EVERY_KEY),
            ).fetchall()
        return [(key, json.loads(text)) for key, text in rows]

    def kept(self, kind: str, key: str, make: Callable[[], str]) -> str:
        """The string that `make` gave at the first call for this key; it is kept sealed."""
        with self.transaction():
            known = self.get(kind, key)
            if known is None:
                known = {"sealed": self.seal(make())}
                self.put(kind, key, known)
        return self.unseal(known["sealed"])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes of the block happen, or none: an exception undoes them. Blocks nest, the outermost one decides.

        Other threads and processes neither write nor see a half-done block meanwhile.
        """
        with self._lock:
            if self._depth == 0:
                with self._writing():
                    self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._roll_back()
                raise
            self._depth -= 1
            if self._depth == 0:
                try:
                    with self._writing():
                        self._connection.execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with in_words(self._path):
            if number := self._disk_error():
                raise OSError(number, os.strerror(number), self._path)
            yield

    def _roll_back(self) -> None:
        # A full disk has ended the transaction already (sqlite.org/lang_transaction.html, 3.2).
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def seal(self, text: str) -> str:
        """`text` encrypted and authenticated (AES-256-GCM), as base64; two results for one string differ."""
        nonce = os.urandom(_NONCE_BYTES)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, text.encode(), None)).decode()

    def unseal(self, sealed: str) -> str:
        """The string that was sealed; raises ValueError for a tampered value or another store's key."""
        raw = base64.b64decode(sealed)
        try:
            return self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], None).decode()
        except InvalidTag:
            raise ValueError("a sealed value does not open with this local cloud's seal.key") from None


class StoreChanges:
    """Notices that another connection, of this or of another process, has written to the store in `path`."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        self._seen = self._version()

    def since_last(self) -> bool:
        """Whether anything was written since the last call, or since this object was created."""
        before, self._seen = self._seen, self._version()
        return self._seen != before

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _version(self) -> int:
        # Changes with each commit of another connection (https://sqlite.org/pragma.html#pragma_data_version).
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version


def seal_key(path: Path) -> bytes:
    """The key in `path`, created on the first call, mode 0600. Two processes that call it at once get the same key.

    Raises `StoreDamagedError` for a file of another length.
    """
    if not path.exists():
        files.write_once(path, os.urandom(SEAL_KEY_BYTES))
    key = path.read_bytes()
    if len(key) != SEAL_KEY_BYTES:
        raise StoreDamagedError(path, f"{len(key)} bytes, {SEAL_KEY_BYTES} are expected")
    return key
