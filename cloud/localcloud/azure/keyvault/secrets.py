"""Secrets and their versions, one store for ARM and the data plane. Values are kept sealed.

Rules: Key Vault REST 7.4, azure-docs `key-vault/secrets/about-secrets` (names, 25 KB, dates that do not stop a read). A
deleted secret keeps its name for the vault's retention period.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeGuard

from localcloud.azure.keyvault import errors
from localcloud.azure.keyvault.vaults import SECRET_KIND, KeyVault
from localcloud.core.clock import now
from localcloud.core.store import Store

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
    """The secrets of every vault."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, vault: KeyVault, name: str) -> KeyVaultSecret | None:
        """The live secret of this name."""
        secret = self._load(vault, name)
        return secret if isinstance(secret, KeyVaultSecret) else None

    def find_deleted(self, vault: KeyVault, name: str) -> DeletedSecret | None:
        """The soft-deleted secret of this name."""
        secret = self._load(vault, name)
        return secret if isinstance(secret, DeletedSecret) else None

    def all(self, vault: KeyVault) -> list[KeyVaultSecret]:
        """Every live secret of the vault, by name."""
        return [entry for entry in self._everything(vault) if isinstance(entry, KeyVaultSecret)]

    def all_deleted(self, vault: KeyVault) -> list[DeletedSecret]:
        """Every soft-deleted secret of the vault, by name."""
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

        Raises:
            VaultError: 400 for a bad name or value, 409 when a soft-deleted secret holds the name, 403 for another
                value of a certificate's secret.
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
                raise errors.name_is_deleted(existing.secret.name)
            if existing and existing.current.managed and not managed:
                raise errors.managed("set")
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
                raise errors.managed("delete")
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
            raise errors.purge_protected(vault.name, vault.location)
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
