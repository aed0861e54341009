"""What the parts of a stack are made with: its vault and key-vault-user, and what a hosted cluster's parts share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.azure.providers import ClusterConnection, Deployer
from identity.naming import parse_arm_id
from identity.plugin_schema import VaultAddress
from identity.settings import HostedClusterSettings, Settings


@dataclass(frozen=True, kw_only=True)
class CredentialStore:
    """A vault and its key-vault-user: made by this stack, or by the shared stack whose outputs it takes.

    `vault_id` is an ARM id, empty in a stack without a vault; the key-vault-user's client id is empty if no pod mounts
    a secret. Its object id is there if it gets a role on each secret, None if it has one on the whole vault. The
    `attach_command` is that of a created key-vault-user. Secrets depend on the resources in `vault`, mounts on those in
    `key_vault_user`; both are empty if another stack made them.
    """

    vault_id: str = ""
    vault_uri: pulumi.Input[str] = ""
    key_vault_user_client_id: pulumi.Input[str] = ""
    key_vault_user_object_id: pulumi.Input[str] | None = None
    attach_command: pulumi.Output[str] | None = None
    vault: Sequence[pulumi.Resource] = ()
    key_vault_user: Sequence[pulumi.Resource] = ()

    @property
    def vault_name(self) -> str:
        """The vault's name, from its ARM id; empty without a vault."""
        return parse_arm_id(self.vault_id).name if self.vault_id else ""


@dataclass(frozen=True, kw_only=True)
class ClusterContext:
    """One hosted cluster, and what all of its parts share.

    `connection` leads to the management cluster, None if the stack has no object there; `stack_owner` is the stack's
    owner id, None in a run that only renews, which leaves it as it is. `infrastructure` has the resources that roles'
    scopes are in, empty if they exist already.
    """

    settings: Settings
    cluster: HostedClusterSettings
    store: CredentialStore
    deployer: Deployer
    connection: ClusterConnection | None
    stack_owner: pulumi.Input[str] | None
    infrastructure: Sequence[pulumi.Resource] = ()

    def in_vault(self, secret_name: str) -> VaultAddress:
        """The address of a secret in the stack's vault, for the plugin."""
        return {
            "cloud": self.settings.cloud.name,
            "tenantId": self.settings.tenant_id,
            "vaultId": self.store.vault_id,
            "secretName": secret_name,
        }
