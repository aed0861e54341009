"""The key-vault-user: the identity with which the CSI driver reads the vault, not one of the control plane's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi

from components.azure.managed_identity import AssignedIdentity
from components.azure.management_cluster import AddOnIdentity
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from components.azure.vault import Vault
from identity import resource_types
from identity.roles import KEY_VAULT_SECRETS_USER_ROLE
from identity.settings import Settings

# Replaces HyperShift's RBAC key in the assignment's name; HyperShift has no name for this assignment.
READER_COMPONENT: Final = "key-vault-user"


@dataclass(frozen=True, kw_only=True)
class ExistingIdentity:
    """A managed identity that exists: its client id, and the object id for its role assignments."""

    client_id: str
    object_id: str


@dataclass(frozen=True, kw_only=True)
class NewIdentity:
    """A managed identity to create. `node_resource_group` has the nodes' scale sets; None if no cluster is known."""

    name: str
    node_resource_group: str | None


@dataclass(frozen=True, kw_only=True)
class KeyVaultUserArgs:
    """Inputs of `KeyVaultUser`: the vault and the identity (the AKS add-on's, an existing one, or one to create).

    `stack_owner` is the stack's owner id.
    """

    identity: ExistingIdentity | AddOnIdentity | NewIdentity
    vault: Vault
    settings: Settings
    stack_owner: pulumi.Input[str] | None


class KeyVaultUser(pulumi.ComponentResource):
    """Key Vault Secrets User on the vault, and nothing wider, for one managed identity; with
    `keyVaultUserScope: secrets` on each secret instead (`control_plane_identity.py`).

    Outputs: `client_id` (Output[str], in the SecretProviderClasses and `ARO_HCP_KEY_VAULT_USER_CLIENT_ID`),
    `principal_id` (Output[str]), `attach_command` (Output[str], None if the identity exists already): a created
    identity works only after the command has assigned it to the nodes.
    """

    def __init__(self, name: str, args: KeyVaultUserArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(resource_types.KEY_VAULT_USER, name, None, opts)
        self.attach_command: pulumi.Output[str] | None = None
        if isinstance(args.identity, NewIdentity):
            created = AssignedIdentity(
                f"{name}-identity",
                self,
                args.settings,
                args.stack_owner,
                resource_name_=args.identity.name,
                location=args.settings.location,
            )
            group = args.identity.node_resource_group or "<the nodes' resource group>"
            self.client_id, self.principal_id = created.client_id, created.principal_id
            self.attach_command = created.resource.id.apply(lambda known: attach_command(group, known))
        else:
            self.client_id = pulumi.Output.from_input(args.identity.client_id)
            self.principal_id = pulumi.Output.from_input(args.identity.object_id)
        if args.settings.key_vault_user_scope == "vault":
            RoleGrants(
                f"{name}-roles",
                RoleGrantsArgs(
                    infra_id=args.vault.vault_name,
                    component=READER_COMPONENT,
                    role=KEY_VAULT_SECRETS_USER_ROLE,
                    scopes={"vault": args.vault.vault_id},
                    subscription_id=args.settings.subscription_id,
                    principal_id=self.principal_id,
                ),
                pulumi.ResourceOptions(parent=self, depends_on=[args.vault]),
            )
        self.register_outputs(
            {"client_id": self.client_id, "principal_id": self.principal_id, "attach_command": self.attach_command}
        )


def attach_command(node_resource_group: str, identity_id: str) -> str:
    """The shell command that assigns the identity to every scale set of the nodes."""
    return (
        f"az vmss list --resource-group '{node_resource_group}' --query '[].name' --output tsv | xargs -I NAME "
        f"az vmss identity assign --resource-group '{node_resource_group}' --name NAME --identities '{identity_id}'"
    )
