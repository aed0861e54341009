"""The blobs of every account: their bytes, type, index tags and time of change."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Final
from xml.sax.saxutils import escape

from starlette.responses import Response

from localcloud.azure.resource_store import Resources
from localcloud.azure.shared import refusals
from localcloud.azure.shared.refusals import ServiceError
from localcloud.core import clock
from localcloud.core.store import STORED, Document, Store, StoredBytes, from_document, to_document

# The storage accounts of the local cloud by name, their public parts, and their keys.

ACCOUNTS: Final = "Microsoft.Storage/storageAccounts"
BLOB_SERVICES: Final = f"{ACCOUNTS}/blobServices"
CONTAINERS: Final = f"{BLOB_SERVICES}/containers"
CONTAINER_NAME: Final = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_KEY_NAMES: Final = ("key1", "key2")
_KEY_BYTES: Final = 64
_KEYS_KIND: Final = "storage-keys"


@dataclass(frozen=True)
class Accounts:
    """Every account; a name is unique in Azure."""

    resources: Resources

    def named(self, name: str) -> Document | None:
        accounts = self.resources.below("/subscriptions", ACCOUNTS)
        return next((account for account in accounts if account["name"] == name.lower()), None)

    def container(self, account: Document, name: str) -> Document | None:
        return self.resources.get(_container_id(account, name))

    def make_container(self, account: Document, name: str) -> None:
        """Make a private container."""
        own = {"id": _container_id(account, name), "name": name, "type": CONTAINERS}
        self.resources.put({**own, "properties": {**new_container(), "publicAccess": "None"}})

    def delete_container(self, account: Document, name: str) -> None:
        """Delete a container with its blobs."""
        self.resources.delete(_container_id(account, name))
        Blobs(self.resources.store).delete_container(account["name"], name)


def _container_id(account: Document, name: str) -> str:
    return f"{account['id']}/blobServices/default/containers/{name}"


def allows_anyone(account: Document) -> bool:
    """Whether containers of the account may be public."""
    return bool(account["properties"].get("allowBlobPublicAccess"))


def is_public(container: Document, *, listed: bool) -> bool:
    """Whether anybody may read the container's blobs, or list them."""
    return container["properties"]["publicAccess"] in ({"Container"} if listed else {"Blob", "Container"})


def new_container() -> dict[str, Any]:
    """The service's own properties of a written container, as recorded from Azure (COVERAGE.md)."""
    return {
        "deleted": False,
        "remainingRetentionDays": 0,
        "defaultEncryptionScope": "$account-encryption-key",
        "denyEncryptionScopeOverride": False,
        "leaseStatus": "Unlocked",
        "leaseState": "Available",
        "lastModifiedTime": time_now(),
        "legalHold": {"hasLegalHold": False, "tags": []},
        "hasImmutabilityPolicy": False,
        "hasLegalHold": False,
    }


def time_now() -> str:
    """Now, to a tenth of a microsecond, as Azure Storage writes it."""
    return clock.now().strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


@dataclass(frozen=True)
class AccountKeys:
    """The two keys of every account, the base64 text of 64 bytes each; created at the first request, kept sealed."""

    store: Store

    def of(self, account: str) -> dict[str, str]:
        """The account's keys by their names, key1 first."""
        with self.store.transaction():
            known = self.store.get(_KEYS_KIND, account)
            if known is None:
                known = {
                    name: self.store.seal(base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode())
                    for name in _KEY_NAMES
                }
                self.store.put(_KEYS_KIND, account, known)
        return {name: self.store.unseal(known[name]) for name in _KEY_NAMES}

    def forget(self, account: str) -> None:
        """Remove the keys; another account of the name gets others."""
        self.store.delete(_KEYS_KIND, account)


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
        self._delete_all(f"{account}/{container}/")

    def delete_account(self, account: str) -> None:
        self._delete_all(f"{account}/")

    def _delete_all(self, prefix: str) -> None:
        for key, _ in self._store.items(_KIND, prefix):
            self._store.delete(_KIND, key)


def _key(account: str, container: str, name: str) -> str:
    return f"{account}/{container}/{name}"


not_emulated: Final = partial(refusals.not_emulated, "blob")


def render(error: ServiceError) -> Response:
    suffix = f"\nRequestId:{uuid.uuid4()}\nTime:{datetime.now(UTC).isoformat()}"
    text = f"<Code>{error.code}</Code><Message>{escape(error.message + suffix)}</Message>"
    return Response(
        f'<?xml version="1.0" encoding="utf-8"?><Error>{text}</Error>',
        status_code=error.status,
        media_type="application/xml",
        headers={"x-ms-error-code": error.code, **error.headers},
    )
