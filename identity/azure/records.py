"""Records of ARM's resources; `of` parses ARM's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from identity.azure.client import AzureObject
from identity.credentials import rfc3339
from identity.credentials.secret_tags import THUMBPRINT


@dataclass(frozen=True, kw_only=True)
class SecretMetadata:
    """The current version of a Key Vault secret without its value, which ARM never shows.

    `created` is the version's. Another tool's secret may have no dates and no `thumbprint`.
    """

    id: str
    version: str
    uri: str
    enabled: bool
    created: datetime
    not_before: datetime | None
    expires: datetime | None
    tags: Mapping[str, str]

    @classmethod
    def of(cls, answer: AzureObject) -> Self:
        """Microsoft.KeyVault/vaults/secrets."""
        properties = answer["properties"]
        attributes = properties.get("attributes") or {}
        return cls(
            id=answer["id"],
            version=properties["secretUriWithVersion"].rstrip("/").rpartition("/")[2],
            uri=properties["secretUri"],
            enabled=attributes.get("enabled", True),
            created=datetime.fromtimestamp(attributes["created"], UTC),
            not_before=rfc3339.from_unix(attributes.get("nbf")),
            expires=rfc3339.from_unix(attributes.get("exp")),
            tags=answer.get("tags") or {},
        )

    @property
    def name(self) -> str:
        return self.id.rpartition("/")[2]

    @property
    def thumbprint(self) -> str | None:
        """SHA-1 of the certificate, upper-case hexadecimal."""
        return self.tags.get(THUMBPRINT)


@dataclass(frozen=True, kw_only=True)
class RoleAssignmentRecord:
    """A role of a principal at a scope."""

    id: str
    scope: str
    principal_id: str
    principal_type: str | None
    role_definition_id: str

    @classmethod
    def of(cls, answer: AzureObject) -> Self:
        """Microsoft.Authorization/roleAssignments."""
        properties = answer["properties"]
        return cls(
            id=answer["id"],
            scope=properties["scope"],
            principal_id=properties["principalId"],
            principal_type=properties.get("principalType"),
            role_definition_id=properties["roleDefinitionId"],
        )

    @property
    def name(self) -> str:
        """The assignment's own name, a UUID."""
        return self.id.rpartition("/")[2]

    @property
    def role(self) -> str:
        """GUID of the role, in lower case."""
        return self.role_definition_id.rpartition("/")[2].lower()


@dataclass(frozen=True, kw_only=True)
class ManagedIdentityRecord:
    """A user-assigned managed identity."""

    id: str
    name: str
    location: str
    client_id: str
    principal_id: str
    tags: Mapping[str, str]

    @classmethod
    def of(cls, answer: AzureObject) -> Self:
        """Microsoft.ManagedIdentity/userAssignedIdentities."""
        return cls(
            id=answer["id"],
            name=answer["name"],
            location=answer["location"],
            client_id=answer["properties"]["clientId"],
            principal_id=answer["properties"]["principalId"],
            tags=answer.get("tags") or {},
        )


@dataclass(frozen=True, kw_only=True)
class FederatedCredentialRecord:
    """What Entra ID compares a token with, of a managed identity's federated credential."""

    id: str
    name: str
    issuer: str
    subject: str
    audiences: tuple[str, ...]

    @classmethod
    def of(cls, answer: AzureObject) -> Self:
        """Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials."""
        properties = answer["properties"]
        return cls(
            id=answer["id"],
            name=answer["name"],
            issuer=properties["issuer"],
            subject=properties["subject"],
            audiences=tuple(properties["audiences"]),
        )
