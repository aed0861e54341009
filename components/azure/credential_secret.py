"""The Key Vault secret that carries one identity's credential document to its pods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

import pulumi

from components.azure.credential_store import CredentialStore
from components.plugin.resources import CredentialSecret
from identity.credentials import rfc3339
from identity.plugin_schema import CredentialDocument, CredentialValidity
from identity.settings import IdentitySettings, Settings


@dataclass(frozen=True, kw_only=True)
class CredentialDates:
    """The four dates of a document (UTC, whole seconds)."""

    not_before: datetime
    not_after: datetime
    renew_after: datetime
    cannot_renew_after: datetime

    def written(self) -> CredentialValidity[str]:
        """The inputs of the secret: RFC 3339."""
        return {
            "notBefore": rfc3339.render(self.not_before),
            "notAfter": rfc3339.render(self.not_after),
            "renewAfter": rfc3339.render(self.renew_after),
            "cannotRenewAfter": rfc3339.render(self.cannot_renew_after),
        }


class CredentialSummary(TypedDict):
    """What the stack's outputs show of a credential. Dates are RFC 3339 in UTC; nothing of it is secret.

    If another tool stored the credential in the vault, its thumbprint is None, and each date that it did not write.
    Only a certificate that the stack issued has a generation.
    """

    notAfter: str | None
    renewAfter: str | None
    thumbprint: str | None  # SHA-1, upper-case hexadecimal
    generation: str | None  # slot and number (`a2`)


@dataclass(frozen=True, kw_only=True)
class IssuedDocument:
    """A document that the plugin writes from the key of a certificate that it issued in the same run.

    Its fields are inputs of the secret, Output[str] but for the authority's URL. `proven_at` is when its certificate
    passed the gate.
    """

    authority_host: str
    client_id: pulumi.Output[str]
    object_id: pulumi.Output[str]
    thumbprint: pulumi.Output[str]
    generation: pulumi.Output[str]
    dates: pulumi.Output[CredentialDates]
    proven_at: pulumi.Output[str]

    def inputs(self) -> CredentialDocument[pulumi.Input[str]]:
        dates = self.dates.apply(CredentialDates.written)
        return {
            "authorityHost": self.authority_host,
            "clientId": self.client_id,
            "objectId": self.object_id,
            "thumbprint": self.thumbprint,
            "generation": self.generation,
            "provenAt": self.proven_at,
            "notBefore": dates["notBefore"],
            "notAfter": dates["notAfter"],
            "renewAfter": dates["renewAfter"],
            "cannotRenewAfter": dates["cannotRenewAfter"],
        }


@dataclass(frozen=True, kw_only=True)
class DocumentFile:
    """A valid document that the plugin copies from a file; `thumbprint` is SHA-1 in upper-case hexadecimal.

    `remarks` are its implausible dates.
    """

    path: str
    client_id: str
    thumbprint: str
    dates: CredentialDates
    remarks: tuple[str, ...] = ()

    def inputs(self) -> CredentialDocument[pulumi.Input[str]]:
        dates = self.dates.written()
        return {
            "file": self.path,
            "clientId": self.client_id,
            "thumbprint": self.thumbprint,
            "notBefore": dates["notBefore"],
            "notAfter": dates["notAfter"],
            "renewAfter": dates["renewAfter"],
            "cannotRenewAfter": dates["cannotRenewAfter"],
        }


def credential_secret(
    name: str,
    document: IssuedDocument | DocumentFile,
    identity: IdentitySettings,
    settings: Settings,
    store: CredentialStore,
    *,
    stack_owner: pulumi.Input[str] | None,
    opts: pulumi.ResourceOptions,
) -> CredentialSecret:
    """A secret in msi-dataplane's storage format (pkg/dataplane/keyvault.go).

    The secret's attributes have the validity, its tags the renewal dates, certificate and generation. A renewal is a
    new version of the same secret. `stack_owner` is the stack's owner id; None in a run that only renews, which leaves
    it as it is.
    """
    return CredentialSecret(
        name,
        cloud=settings.cloud.name,
        tenantId=settings.tenant_id,
        vaultId=store.vault_id,
        secretName=identity.secret_name,
        objectEncoding=identity.object_encoding,
        tags=settings.tags,
        ownerId=stack_owner,
        **document.inputs(),
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=store.vault)),
    )


def summary_of(dates: CredentialDates, thumbprint: str, generation: str | None = None) -> CredentialSummary:
    """The summary of a credential whose document the stack knows."""
    return {
        "notAfter": rfc3339.render(dates.not_after),
        "renewAfter": rfc3339.render(dates.renew_after),
        "thumbprint": thumbprint,
        "generation": generation,
    }
