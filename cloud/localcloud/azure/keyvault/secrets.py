"""Secrets and their versions, one store for ARM and the data plane. Values are kept sealed.

Rules: Key Vault REST 7.4, azure-docs `key-vault/secrets/about-secrets` (names, 25 KB, dates that do not stop a read). A
deleted secret keeps its name for the vault's retention period.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeGuard

from localcloud.azure.keyvault import errors
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.refusals import refusal
from localcloud.core.clock import now
from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD
from localcloud.core.store import Document, Store

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
        return str(self.resource["name"])

    @property
    def id(self) -> str:
        return str(self.resource["id"])

    @property
    def location(self) -> str:
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
        return self.deleted_at + self.vault.retention


class Vaults:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._store = resources.store

    def named(self, name: str) -> KeyVault | None:
        """The live vault of this name, in any letter case."""
        known = self._store.get(_NAME_KIND, name.lower())
        resource = self._resources.get(known["id"]) if known else None
        return KeyVault(resource) if resource else None

    def all(self) -> list[KeyVault]:
        vaults = (self.named(name) for name, _ in self._store.items(_NAME_KIND))
        return [vault for vault in vaults if vault is not None]

    def stacks_own(self) -> KeyVault | None:
        """The only vault that was not seeded, which a loopback address means; None without one or with several."""
        own = [vault for vault in self.all() if not vault.resource.get("seeded")]
        return own[0] if len(own) == 1 else None

    def put(self, resource: Document) -> KeyVault:
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
        vaults = [self.deleted(name) for name, _ in self._store.items(_DELETED_KIND)]
        return [vault for vault in vaults if vault is not None]

    def recover(self, deleted: DeletedVault) -> KeyVault:
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


MAXIMUM_BYTES: Final = 25 * 1024
_MAXIMUM_TAGS: Final = 15
_NAME: Final = re.compile(r"[0-9a-zA-Z-]{1,127}")


@dataclass(frozen=True)
class SecretVersion:
    """One version of a secret. Dates are Unix seconds, UTC; `sealed` is the value as stored."""

    name: str
    version: str
    sealed: str
    enabled: bool
    created: int
    updated: int
    nbf: int | None = None
    exp: int | None = None
    content_type: str | None = None
    tags: Mapping[str, str] | None = None
    managed: bool = False  # it is a certificate's


@dataclass(frozen=True)
class SecretChange:
    """What a caller may set on a version; None leaves the current value (or the default)."""

    enabled: bool | None = None
    nbf: int | None = None
    exp: int | None = None
    content_type: str | None = None
    tags: Mapping[str, str] | None = None

    @classmethod
    def of(cls, attributes: object, content_type: object, tags: object) -> SecretChange:
        """Read a request's members; raises 400 `BadParameter` for an unknown or ill-typed one."""
        written = {} if attributes is None else attributes
        if not isinstance(written, dict):
            raise errors.bad_parameter("Property 'attributes' has invalid value: an object is expected.")
        # The service prints these in every answer; a client that sends them back changes nothing.
        read_only = {"created", "updated", "recoveryLevel", "recoverableDays"}
        if unknown := sorted(set(written) - {"enabled", "nbf", "exp"} - read_only):
            raise errors.bad_parameter(f"Unrecognized property '{unknown[0]}' in 'attributes'.")
        enabled, nbf, exp = written.get("enabled"), written.get("nbf"), written.get("exp")
        if enabled is not None and not isinstance(enabled, bool):
            raise errors.bad_parameter("Property 'enabled' has invalid value: true or false is expected.")
        for name, value in (("nbf", nbf), ("exp", exp)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise errors.bad_parameter(f"Property '{name}' has invalid value: Unix seconds are expected.")
        if content_type is not None and not (isinstance(content_type, str) and len(content_type) <= 255):
            raise errors.bad_parameter("Property 'contentType' has invalid value: at most 255 characters are allowed.")
        if tags is not None and not _are_tags(tags):
            raise errors.bad_parameter(f"Property 'tags' has invalid value: at most {_MAXIMUM_TAGS} strings by name.")
        return cls(enabled, nbf, exp, content_type, tags)


@dataclass(frozen=True)
class KeyVaultSecret:
    """A secret with all its versions, the newest last."""

    name: str
    versions: tuple[SecretVersion, ...]

    @property
    def current(self) -> SecretVersion:
        """The newest version, disabled or not, which a request without a version means."""
        return self.versions[-1]

    def at(self, version: str | None) -> SecretVersion | None:
        """The named version, the current one for None or ""."""
        if not version:
            return self.current
        return next((candidate for candidate in self.versions if candidate.version == version), None)


@dataclass(frozen=True)
class DeletedSecret:
    """A secret in its retention period."""

    secret: KeyVaultSecret
    deleted_at: datetime


class Secrets:
    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, vault: KeyVault, name: str) -> KeyVaultSecret | None:
        secret = self._load(vault, name)
        return secret if isinstance(secret, KeyVaultSecret) else None

    def find_deleted(self, vault: KeyVault, name: str) -> DeletedSecret | None:
        secret = self._load(vault, name)
        return secret if isinstance(secret, DeletedSecret) else None

    def all(self, vault: KeyVault) -> list[KeyVaultSecret]:
        return [entry for entry in self._everything(vault) if isinstance(entry, KeyVaultSecret)]

    def all_deleted(self, vault: KeyVault) -> list[DeletedSecret]:
        return [entry for entry in self._everything(vault) if isinstance(entry, DeletedSecret)]

    def value(self, version: SecretVersion) -> str:
        """The value in clear."""
        return self._store.unseal(version.sealed)

    def is_current(self, secret: KeyVaultSecret, value: object, change: SecretChange) -> bool:
        """Whether the current version already has this value and the attributes of `change`."""
        current = secret.current
        wanted = SecretChange(change.enabled is not False, change.nbf, change.exp, change.content_type, change.tags)
        there = SecretChange(current.enabled, current.nbf, current.exp, current.content_type, current.tags)
        return there == wanted and self.value(current) == value

    def set(
        self, vault: KeyVault, name: str, value: object, change: SecretChange, *, managed: bool = False
    ) -> SecretVersion:
        """Add a version, which creates a missing secret; `managed`: it is a certificate's.

        Raises 400 for a bad name or value, 409 if a soft-deleted secret has the name, 403 for a certificate's secret.
        """
        if not _NAME.fullmatch(name):
            raise errors.bad_parameter(f"The request URI contains an invalid name: {name}")
        if not isinstance(value, str):
            raise errors.bad_parameter("Property 'value' is required.")
        if len(value.encode()) > MAXIMUM_BYTES:
            raise errors.bad_parameter(f"The secret value is too long: at most {MAXIMUM_BYTES} bytes are allowed.")
        with self._store.transaction():
            existing = self._load(vault, name)
            if isinstance(existing, DeletedSecret):
                raise refusal("Conflict deleted secret", name=existing.secret.name)
            if existing and existing.current.managed and not managed:
                raise refusal("Forbidden secret of a certificate", operation="set")
            instant = int(now().timestamp())
            version = SecretVersion(
                name=existing.name if existing else name,
                version=uuid.uuid4().hex,
                sealed=self._store.seal(value),
                enabled=change.enabled is not False,
                created=instant,
                updated=instant,
                nbf=change.nbf,
                exp=change.exp,
                content_type=change.content_type,
                tags=change.tags,
                managed=managed,
            )
            self._save(vault, KeyVaultSecret(version.name, (*(existing.versions if existing else ()), version)))
        return version

    def update(self, vault: KeyVault, name: str, version: str | None, change: SecretChange) -> SecretVersion:
        """Apply the values of `change` that are not None to one version; raises 404."""
        with self._store.transaction():
            secret = self.find(vault, name)
            existing = secret.at(version) if secret else None
            if secret is None or existing is None:
                raise errors.not_found("secret", name, version)
            stated = {field: value for field, value in vars(change).items() if value is not None}
            changed = replace(existing, updated=int(now().timestamp()), **stated)
            versions = tuple(changed if version is existing else version for version in secret.versions)
            self._save(vault, replace(secret, versions=versions))
        return changed

    def delete(self, vault: KeyVault, name: str, *, managed: bool = False) -> DeletedSecret:
        """Soft-delete a secret with all its versions; raises 404, and 403 for a certificate's secret."""
        with self._store.transaction():
            secret = self.find(vault, name)
            if secret is None:
                raise errors.not_found("secret", name)
            if secret.current.managed and not managed:
                raise refusal("Forbidden secret of a certificate", operation="delete")
            deleted = DeletedSecret(secret, now())
            self._save(vault, secret, deleted.deleted_at)
        return deleted

    def recover(self, vault: KeyVault, name: str) -> KeyVaultSecret:
        """Recover a soft-deleted secret; raises 404."""
        with self._store.transaction():
            deleted = self.find_deleted(vault, name)
            if deleted is None:
                raise errors.not_found("secret", name)
            self._save(vault, deleted.secret)
        return deleted.secret

    def purge(self, vault: KeyVault, name: str) -> None:
        """Purge a soft-deleted secret; raises 404, or 403 under purge protection."""
        if self.find_deleted(vault, name) is None:
            raise errors.not_found("secret", name)
        if vault.is_purge_protected:
            raise refusal("Forbidden purge", vault=vault.name, location=vault.location)
        self._store.delete(SECRET_KIND, vault.key(name))

    def _everything(self, vault: KeyVault) -> Iterator[KeyVaultSecret | DeletedSecret | None]:
        for key, _ in self._store.items(SECRET_KIND, vault.key("")):
            yield self._load(vault, key.partition("/")[2])

    def _load(self, vault: KeyVault, name: str) -> KeyVaultSecret | DeletedSecret | None:
        """The secret of this name; a deleted one whose retention is over is purged here."""
        document = self._store.get(SECRET_KIND, vault.key(name))
        if document is None:
            return None
        secret = KeyVaultSecret(document["name"], tuple(SecretVersion(**version) for version in document["versions"]))
        if document["deletedAt"] is None:
            return secret
        deleted = DeletedSecret(secret, datetime.fromisoformat(document["deletedAt"]))
        if deleted.deleted_at + vault.retention > now():
            return deleted
        self._store.delete(SECRET_KIND, vault.key(name))
        return None

    def _save(self, vault: KeyVault, secret: KeyVaultSecret, deleted_at: datetime | None = None) -> None:
        document: dict[str, Any] = {
            "name": secret.name,
            "versions": [asdict(version) for version in secret.versions],
            "deletedAt": deleted_at and deleted_at.isoformat(),
        }
        self._store.put(SECRET_KIND, vault.key(secret.name), document)


def _are_tags(tags: object) -> TypeGuard[dict[str, str]]:
    return (
        isinstance(tags, dict)
        and len(tags) <= _MAXIMUM_TAGS
        and all(isinstance(value, str) and len(value) <= 256 and len(name) <= 256 for name, value in tags.items())
    )
