"""The vaults: found by name, soft-deleted, recovered, purged.

A vault is an ARM resource; its name is unique in all of Azure, so data plane and ARM find it by name. A deleted vault
keeps its name and its content for the retention period (azure-docs `key-vault/general/soft-delete-overview`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from localcloud.azure.resource_store import Resources
from localcloud.core.clock import now
from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD
from localcloud.core.store import Document

VAULTS: Final = "Microsoft.KeyVault/vaults"
PUBLIC_SUFFIX: Final = CLOUDS[DEFAULT_CLOUD].vault_suffix
SECRET_KIND: Final = "keyvault-secret"
KEY_KIND: Final = "keyvault-key"
CERTIFICATE_KIND: Final = "keyvault-certificate"
_DELETED_KIND: Final = "keyvault-deleted"
_NAME_KIND: Final = "keyvault-name"  # ARM id by vault name; an entry may outlive its vault
DEFAULT_RETENTION_DAYS: Final = 90


@dataclass(frozen=True)
class KeyVault:
    """A vault as the data plane sees it; `suffix` is that of the vaults of the cloud that was asked."""

    resource: Document
    suffix: str = PUBLIC_SUFFIX

    @property
    def name(self) -> str:
        """Its name, as created."""
        return str(self.resource["name"])

    @property
    def id(self) -> str:
        """Its ARM id."""
        return str(self.resource["id"])

    @property
    def location(self) -> str:
        """Its Azure location."""
        return str(self.resource["location"])

    @property
    def uri(self) -> str:
        """Its address without a trailing slash: `https://<name>.<suffix>`."""
        return f"https://{self.name.lower()}.{self.suffix}"

    def key(self, name: str) -> str:
        """The store's key of something in it; "": what the keys of all begin with."""
        return f"{self.name}/{name}".lower()

    @property
    def retention(self) -> timedelta:
        """How long deleted content stays recoverable."""
        return timedelta(days=self.resource["properties"].get("softDeleteRetentionInDays", DEFAULT_RETENTION_DAYS))

    @property
    def is_purge_protected(self) -> bool:
        """Whether purge protection is on, so that nothing deleted can be purged early."""
        return bool(self.resource["properties"].get("enablePurgeProtection"))

    @property
    def recovery_level(self) -> str:
        """The recovery level of its content (Key Vault REST 7.4, `DeletionRecoveryLevel`)."""
        level = "Recoverable" if self.retention.days == DEFAULT_RETENTION_DAYS else "CustomizedRecoverable"
        return level if self.is_purge_protected else f"{level}+Purgeable"


@dataclass(frozen=True)
class DeletedVault:
    """A vault in its retention period."""

    vault: KeyVault
    deleted_at: datetime

    @property
    def purge_at(self) -> datetime:
        """When Azure purges it."""
        return self.deleted_at + self.vault.retention


class Vaults:
    """Every vault of the local cloud, by name."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._store = resources.store

    def named(self, name: str) -> KeyVault | None:
        """The live vault of this name, in any letter case."""
        known = self._store.get(_NAME_KIND, name.lower())
        resource = self._resources.get(known["id"]) if known else None
        return KeyVault(resource) if resource else None

    def all(self) -> list[KeyVault]:
        """Every live vault."""
        vaults = (self.named(name) for name, _ in self._store.items(_NAME_KIND))
        return [vault for vault in vaults if vault is not None]

    def stacks_own(self) -> KeyVault | None:
        """The only vault that was not seeded, which a loopback address means; None without one or with several."""
        own = [vault for vault in self.all() if not vault.resource.get("seeded")]
        return own[0] if len(own) == 1 else None

    def put(self, resource: Document) -> KeyVault:
        """Write a vault's ARM document."""
        with self._store.transaction():
            self._store.put(_NAME_KIND, resource["name"].lower(), {"id": resource["id"]})
            return KeyVault(self._resources.put(resource))

    def delete(self, vault: KeyVault) -> None:
        """Soft-delete: the vault is gone from ARM, its name and content are kept."""
        with self._store.transaction():
            self._resources.delete(vault.id)
            deleted = {"resource": vault.resource, "deletedAt": now().isoformat()}
            self._store.put(_DELETED_KIND, vault.name.lower(), deleted)

    def deleted(self, name: str) -> DeletedVault | None:
        """The soft-deleted vault of this name; one whose retention is over is purged here."""
        document = self._store.get(_DELETED_KIND, name.lower())
        if document is None:
            return None
        deleted = DeletedVault(KeyVault(document["resource"]), datetime.fromisoformat(document["deletedAt"]))
        if deleted.purge_at <= now():
            self.purge(name)
            return None
        return deleted

    def all_deleted(self) -> list[DeletedVault]:
        """Every soft-deleted vault."""
        vaults = [self.deleted(name) for name, _ in self._store.items(_DELETED_KIND)]
        return [vault for vault in vaults if vault is not None]

    def recover(self, deleted: DeletedVault) -> KeyVault:
        """Recover a soft-deleted vault with its content."""
        with self._store.transaction():
            self._store.delete(_DELETED_KIND, deleted.vault.name.lower())
            return self.put(deleted.vault.resource)

    def purge(self, name: str) -> None:
        """Purge a soft-deleted vault and its content."""
        with self._store.transaction():
            self._store.delete(_DELETED_KIND, name.lower())
            for kind in (SECRET_KIND, KEY_KIND, CERTIFICATE_KIND):
                for key, _ in self._store.items(kind, f"{name.lower()}/"):
                    self._store.delete(kind, key)
