"""The Key Vault secret that carries one identity's credential document to its pods."""

from __future__ import annotations

from typing import TypedDict

import pulumi

from components.azure.credential_store import CredentialStore
from components.plugin.resources import CredentialSecret
from identity.plugin_schema import CredentialDocument
from identity.settings import IdentitySettings, Settings


class CredentialSummary(TypedDict):
    """What the stack's outputs show of a credential. Dates are RFC 3339 in UTC; nothing of it is secret.

    If another tool stored the credential in the vault, its thumbprint is None, and each date that it did not write.
    Only a certificate that the stack issued has a generation.
    """

    notAfter: pulumi.Input[str] | None
    renewAfter: pulumi.Input[str] | None
    thumbprint: pulumi.Input[str] | None  # SHA-1, upper-case hexadecimal
    generation: pulumi.Input[str] | None  # slot and number (`a2`)


def credential_secret(
    name: str,
    document: CredentialDocument[pulumi.Input[str]],
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
        **document,
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=store.vault)),
    )


def summary_of(document: CredentialDocument[pulumi.Input[str]]) -> CredentialSummary:
    """The summary of a credential whose document the stack knows."""
    return {
        "notAfter": document["notAfter"],
        "renewAfter": document["renewAfter"],
        "thumbprint": document["thumbprint"],
        "generation": document.get("generation"),
    }
