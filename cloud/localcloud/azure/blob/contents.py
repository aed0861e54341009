"""The blobs of every account: their bytes, type, index tags and time of change."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from starlette.responses import Response

from localcloud.azure.resource_store import Resources
from localcloud.azure.shared import refusals
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.core import clock
from localcloud.core.documents import document
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
        Blobs(self.resources.store).delete_below(f"{account['name']}/{name}/")


def _container_id(account: Document, name: str) -> str:
    return f"{account['id']}/blobServices/default/containers/{name}"


def allows_anyone(account: Document) -> bool:
    """Whether containers of the account may be public."""
    return bool(account["properties"].get("allowBlobPublicAccess"))


def is_public(container: Document, *, listed: bool) -> bool:
    """Whether anybody may read the container's blobs, or list them."""
    return container["properties"]["publicAccess"] in ({"Container"} if listed else {"Blob", "Container"})


def new_container() -> dict[str, Any]:
    """The service's own properties of a written container."""
    return document(__file__, "new container", now=time_now())


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
_BLOCK_KIND: Final = "blob-block"


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
    """Blobs by path: account, container and name, with slashes between them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, path: str) -> Blob | None:
        document = self._store.get(_KIND, path)
        return None if document is None else from_document(Blob, document)

    def below(self, container: str, prefix: str) -> Iterator[tuple[str, Blob]]:
        """Name and blob of each with this prefix in `container` (`<account>/<name>/`), in the order of the names."""
        for key, kept in self._store.items(_KIND, container + prefix):
            yield key.removeprefix(container), from_document(Blob, kept)

    def put(self, path: str, blob: Blob) -> None:
        """Write a blob whole; its blocks are gone."""
        self._store.put(_KIND, path, to_document(blob))
        self._delete_all(_BLOCK_KIND, _block(path, ""))

    def put_block(self, path: str, block: str, content: bytes) -> None:
        """Keep a part of a blob until the blob is written."""
        self._store.put(_BLOCK_KIND, _block(path, block), to_document(Blob(content, "", None, clock.now())))

    def block(self, path: str, block: str) -> bytes | None:
        """A part that is kept."""
        document = self._store.get(_BLOCK_KIND, _block(path, block))
        return None if document is None else from_document(Blob, document).content

    def delete(self, path: str) -> bool:
        """Remove a blob; returns whether it existed."""
        return self._store.delete(_KIND, path)

    def delete_below(self, prefix: str) -> None:
        """Remove all blobs and blocks of a container or an account, which ends with a slash."""
        for kind in (_KIND, _BLOCK_KIND):
            self._delete_all(kind, prefix)

    def _delete_all(self, kind: str, prefix: str) -> None:
        for key, _ in self._store.items(kind, prefix):
            self._store.delete(kind, key)


def _block(path: str, block: str) -> str:
    return f"{path}\n{block}"


# Index tags of a blob, as a Put Blob states them in `x-ms-tags`.
#
# Source: REST reference of Blob Storage, Put Blob and Set Blob Tags (ten tags, lengths, characters).

TAGS_HEADER: Final = "x-ms-tags"
_MOST_TAGS: Final = 10
_TAG_NAME: Final = re.compile(r"[A-Za-z0-9 +./:=_-]{1,128}")
_TAG_VALUE: Final = re.compile(r"[A-Za-z0-9 +./:=_-]{0,256}")


def stated_tags(headers: Mapping[str, str]) -> dict[str, str]:
    """The tags of a request, {} without the header; raises 400 for an invalid tag."""
    if TAGS_HEADER not in headers:
        return {}
    try:
        pairs = parse_qsl(headers[TAGS_HEADER], keep_blank_values=True, strict_parsing=True, max_num_fields=_MOST_TAGS)
    except ValueError:
        raise refusal("InvalidHeaderValue") from None
    tags = dict(pairs)
    allowed = all(_TAG_NAME.fullmatch(name) and _TAG_VALUE.fullmatch(value) for name, value in pairs)
    if len(tags) < len(pairs) or not allowed:
        raise refusal("InvalidHeaderValue")
    return tags


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
