"""The blobs of every account: their bytes, type, index tags and time of change."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final

from localcloud.azure.resource_store import Resources
from localcloud.core import clock
from localcloud.core.store import STORED, Document, Store, StoredBytes, from_document, to_document

# The storage accounts of the local cloud by name, their public parts, and their keys.


ACCOUNTS: Final = "Microsoft.Storage/storageAccounts"
BLOB_SERVICES: Final = f"{ACCOUNTS}/blobServices"
CONTAINERS: Final = f"{BLOB_SERVICES}/containers"
_KEY_NAMES: Final = ("key1", "key2")
_KEY_BYTES: Final = 64
_KEYS_KIND: Final = "storage-keys"


@dataclass(frozen=True)
class Accounts:
    """Every account; a name is unique in Azure."""

    resources: Resources

    def named(self, name: str) -> Document | None:
        """The account of this name."""
        accounts = self.resources.below("/subscriptions", ACCOUNTS)
        return next((account for account in accounts if account["name"] == name.lower()), None)

    def container(self, account: Document, name: str) -> Document | None:
        """A container of an account."""
        return self.resources.get(f"{account['id']}/blobServices/default/containers/{name}")


def allows_anyone(account: Document) -> bool:
    """Whether containers of the account may be public."""
    return bool(account["properties"].get("allowBlobPublicAccess"))


def is_public(container: Document, *, listed: bool) -> bool:
    """Whether anybody may read the container's blobs, or list them."""
    return container["properties"]["publicAccess"] in ({"Container"} if listed else {"Blob", "Container"})


@dataclass(frozen=True)
class AccountKeys:
    """The two keys of every account, the base64 text of 64 bytes each; created at the first request, kept sealed."""

    store: Store

    def of(self, account: str) -> dict[str, str]:
        """The account's keys by their names, key1 first."""
        with self.store.transaction():
            known = self.store.get(_KEYS_KIND, account)
            if known is None:
                known = {name: self.store.seal(_new_key()) for name in _KEY_NAMES}
                self.store.put(_KEYS_KIND, account, known)
        return {name: self.store.unseal(known[name]) for name in _KEY_NAMES}

    def forget(self, account: str) -> None:
        """Remove the keys; another account of the name gets others."""
        self.store.delete(_KEYS_KIND, account)


def _new_key() -> str:
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


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
