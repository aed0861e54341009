"""The storage accounts of the local cloud by name, and their public parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from localcloud.azure.resource_store import Resources
from localcloud.core.store import Document

ACCOUNTS: Final = "Microsoft.Storage/storageAccounts"
BLOB_SERVICES: Final = f"{ACCOUNTS}/blobServices"
CONTAINERS: Final = f"{BLOB_SERVICES}/containers"


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
