"""The blobs of every account: their bytes, type, index tags and time of change."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final

from localcloud.core import clock
from localcloud.core.documents import STORED, StoredBytes, from_document, to_document
from localcloud.core.store import Store

_KIND: Final = "blob"


@dataclass(frozen=True)
class Blob:
    """One block blob."""

    __pydantic_config__: ClassVar = STORED

    content: StoredBytes
    content_type: str
    cache_control: str | None
    changed: datetime
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def etag(self) -> str:
        """A new one for each write."""
        return f'"0x{hashlib.sha256(self.content + self.changed.isoformat().encode()).hexdigest()[:15].upper()}"'


def md5_of(content: bytes) -> str:
    """The hash of the content, as Azure Storage computes it: a checksum, not a protection."""
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


class Blobs:
    """Blobs by account, container and name."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, account: str, container: str, name: str) -> Blob | None:
        """The blob, None if it does not exist."""
        document = self._store.get(_KIND, _key(account, container, name))
        return None if document is None else from_document(Blob, document)

    def below(self, account: str, container: str, prefix: str) -> Iterator[tuple[str, Blob]]:
        """Name and blob of each with this prefix, in the order of the names."""
        own = _key(account, container, "")
        for key, document in self._store.items(_KIND, own + prefix):
            yield key.removeprefix(own), from_document(Blob, document)

    def put(
        self,
        account: str,
        container: str,
        name: str,
        content: bytes,
        content_type: str,
        cache_control: str | None,
        tags: dict[str, str],
    ) -> Blob:
        """Write a blob whole."""
        blob = Blob(content, content_type, cache_control, clock.now(), tags)
        self._store.put(_KIND, _key(account, container, name), to_document(blob))
        return blob

    def delete(self, account: str, container: str, name: str) -> bool:
        """Remove a blob; returns whether it existed."""
        return self._store.delete(_KIND, _key(account, container, name))

    def delete_container(self, account: str, container: str) -> None:
        """Remove all blobs of a container."""
        self._delete_all(f"{account}/{container}/")

    def delete_account(self, account: str) -> None:
        """Remove all blobs of an account."""
        self._delete_all(f"{account}/")

    def _delete_all(self, prefix: str) -> None:
        for key, _ in self._store.items(_KIND, prefix):
            self._store.delete(_KIND, key)


def _key(account: str, container: str, name: str) -> str:
    return f"{account}/{container}/{name}"
