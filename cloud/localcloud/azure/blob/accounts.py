"""The storage accounts of the local cloud by name, their public parts, and their keys."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from typing import Final

from localcloud.azure.resource_store import Resources
from localcloud.core.store import Document, Store

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
