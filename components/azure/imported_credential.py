"""Credential source `managed-identity`: the credential of a managed identity, issued by Azure's MSI data plane.

Not even the owner of the identity can issue one, so the document comes from outside: as a file, which the plugin copies
into the vault, or as a secret that the data plane's client has stored there. The stack references such a secret.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components.azure.credential_secret import CredentialSummary
from identity.plugin_schema import CredentialDocument


@dataclass(frozen=True, kw_only=True)
class ImportedCredential:
    """The credential of a managed identity, whose object id is `principal_id`. Its attributes are those of
    `EntraApplication`.

    `document` is the one in a file. It is None if the vault has it already: ARM shows its dates, which are attributes
    and tags of the secret.
    """

    client_id: str
    principal_id: str
    document: CredentialDocument[pulumi.Input[str]] | None
    summary: CredentialSummary
