"""Credential source `managed-identity`: the credential of a managed identity, issued by Azure's MSI data plane.

Not even the owner of the identity can issue one, so the document comes from outside: as a file, which the plugin copies
into the vault, or as a secret that the data plane's client has stored there. The stack references such a secret.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components.azure.credential_secret import CredentialSummary, DocumentFile, summary_of


@dataclass(frozen=True, kw_only=True)
class ExistingIdentity:
    """A managed identity that exists: its client id, and the object id for its role assignments."""

    client_id: str
    object_id: str


@dataclass(frozen=True, kw_only=True)
class StoredDocument:
    """A document that is in the vault already. ARM shows its dates, which are attributes and tags of the secret."""

    not_after: str | None
    renew_after: str | None


@dataclass(frozen=True, kw_only=True)
class ImportedCredential:
    """The credential of a managed identity. Its attributes and properties are those of `EntraApplication`."""

    principal: ExistingIdentity
    document: DocumentFile | StoredDocument

    @property
    def client_id(self) -> pulumi.Output[str]:
        return pulumi.Output.from_input(self.principal.client_id)

    @property
    def principal_id(self) -> pulumi.Output[str]:
        return pulumi.Output.from_input(self.principal.object_id)

    @property
    def summary(self) -> pulumi.Output[CredentialSummary]:
        document = self.document
        if isinstance(document, DocumentFile):
            return pulumi.Output.from_input(summary_of(document.dates, document.thumbprint))
        stored: CredentialSummary = {
            "notAfter": document.not_after,
            "renewAfter": document.renew_after,
            "thumbprint": None,
            "generation": None,
        }
        return pulumi.Output.from_input(stored)
