"""The Key Vault secret that carries one identity's credential document to its pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import pulumi

from components.plugin.resources import CredentialSecret
from identity.naming import parse_arm_id, vault_id
from identity.plugin_schema import CredentialDocument
from identity.settings import IdentitySettings, Settings


@dataclass(frozen=True, kw_only=True)
class CredentialStore:
    """A vault and its key-vault-user: made by this stack, or by the shared stack whose outputs it takes.

    `vault_id` is an ARM id, empty in a stack without a vault; the key-vault-user's client id is empty if no pod mounts
    a secret. `reader` is the key-vault-user's object id if it gets a role on each secret, None if it has one on the
    whole vault. Secrets depend on the resources in `vault`, mounts on those in `key_vault_user`; both are empty if
    another stack made them.
    """

    vault_id: str
    vault_uri: pulumi.Input[str]
    key_vault_user_client_id: pulumi.Input[str]
    reader: pulumi.Input[str] | None = None
    vault: Sequence[pulumi.Resource] = ()
    key_vault_user: Sequence[pulumi.Resource] = ()

    @property
    def vault_name(self) -> str:
        """The vault's name, from its ARM id; empty without a vault."""
        return parse_arm_id(self.vault_id).name if self.vault_id else ""


def vault_of(settings: Settings, shared: CredentialStore | None) -> str:
    """ARM id of the vault of the stack: the shared stack's, or its own; empty if it has none."""
    if shared is not None:
        return shared.vault_id
    if settings.vault is None:
        return ""
    return vault_id(settings.subscription_id, settings.resource_group, settings.vault.name)


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
