"""Credential source `managed-identity`: the credential of a managed identity, issued by Azure's MSI data plane.

Not even the owner of the identity can issue one, so the document comes from outside: as a file, which the plugin copies
into the vault, or as a secret that the data plane's client has stored there. The stack references such a secret.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components.azure.credential_secret import CredentialDates, CredentialSummary, DocumentFile, summary_of


@dataclass(frozen=True, kw_only=True)
class ExistingIdentity:
    """A managed identity that exists: its client id, and the object id for its role assignments."""

    client_id: str
    object_id: str


@dataclass(frozen=True, kw_only=True)
class ImportedDocument:
    """A valid credential document in the file at `path`; `thumbprint` is SHA-1 in upper-case hexadecimal.

    `remarks` are what is unlikely about it.
    """

    path: str
    dates: CredentialDates
    thumbprint: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoredDocument:
    """A document that is in the vault already. ARM shows its dates, which are attributes and tags of the secret."""

    not_after: str | None
    renew_after: str | None


@dataclass(frozen=True, kw_only=True)
class ImportedCredentialArgs:
    """Inputs of `ImportedCredential`."""

    principal: ExistingIdentity
    document: ImportedDocument | StoredDocument


class ImportedCredential(pulumi.ComponentResource):
    """The credential of a managed identity.

    Outputs: `client_id`, `principal_id` (Output[str]), `document` (DocumentFile, None if it is in the vault
    already), `summary` (Output[CredentialSummary]), which is `shown` in the state.
    """

    def __init__(self, name: str, args: ImportedCredentialArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:ImportedCredential", name, None, opts)
        self.client_id = pulumi.Output.from_input(args.principal.client_id)
        self.principal_id = pulumi.Output.from_input(args.principal.object_id)
        self.document = _document(args)
        self.summary = pulumi.Output.from_input(_summary(args.document))
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id, "shown": self.summary})


def _document(args: ImportedCredentialArgs) -> DocumentFile | None:
    given = args.document
    if isinstance(given, StoredDocument):
        return None
    return DocumentFile(
        path=given.path, client_id=args.principal.client_id, thumbprint=given.thumbprint, dates=given.dates
    )


def _summary(given: ImportedDocument | StoredDocument) -> CredentialSummary:
    if isinstance(given, StoredDocument):
        return {"notAfter": given.not_after, "renewAfter": given.renew_after, "thumbprint": None, "generation": None}
    return summary_of(given.dates, given.thumbprint)
