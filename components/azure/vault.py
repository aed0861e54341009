"""The Key Vault with the credential documents of every hosted cluster, and the key-vault-user.

That is the identity with which the CSI driver reads the vault, not one of the control plane's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_azure_native import keyvault

from components.azure.managed_identity import AssignedIdentity
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from identity import resource_types
from identity.roles import KEY_VAULT_SECRETS_USER_ROLE
from identity.settings import Settings, VaultSettings


class Vault(pulumi.ComponentResource):
    """Key Vault with RBAC authorization, soft delete and network rules.

    Outputs: `vault_name` and `vault_id` (str, known before the vault exists), `vault_uri` (Output[str]).
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        vault_settings: VaultSettings,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("idstack:azure:Vault", name, None, opts)
        vault = keyvault.Vault(
            f"{name}-vault",
            vault_name=vault_settings.name,
            resource_group_name=settings.resource_group,
            location=settings.location,
            tags=settings.tags,
            properties=keyvault.VaultPropertiesArgs(
                tenant_id=settings.tenant_id,
                sku=keyvault.SkuArgs(family=keyvault.SkuFamily.A, name=keyvault.SkuName.STANDARD),
                enable_rbac_authorization=True,
                enable_soft_delete=True,
                soft_delete_retention_in_days=vault_settings.soft_delete_retention_days,
                # Key Vault rejects an explicit false.
                enable_purge_protection=True if vault_settings.purge_protection else None,
                public_network_access="Enabled" if vault_settings.public_network_access else "Disabled",
                network_acls=keyvault.NetworkRuleSetArgs(
                    # Nothing in the stack needs the bypass: nodes and deployers are not "trusted services".
                    bypass=keyvault.NetworkRuleBypassOptions.NONE,
                    default_action=vault_settings.default_action,
                    ip_rules=[keyvault.IPRuleArgs(value=address) for address in vault_settings.allowed_ip_ranges],
                    virtual_network_rules=[
                        keyvault.VirtualNetworkRuleArgs(id=subnet) for subnet in vault_settings.allowed_subnet_ids
                    ],
                ),
            ),
            opts=pulumi.ResourceOptions(parent=self, protect=settings.protect),
        )
        self.vault_name = vault_settings.name
        self.vault_id = settings.vault_id
        self.vault_uri: pulumi.Output[str] = vault.properties.vault_uri
        self.register_outputs({"vault_name": self.vault_name, "vault_id": self.vault_id, "vault_uri": self.vault_uri})


# Replaces HyperShift's RBAC key in the assignment's name; HyperShift has no name for this assignment.
KEY_VAULT_USER_COMPONENT: Final = "key-vault-user"


@dataclass(frozen=True, kw_only=True)
class ExistingIdentity:
    """A managed identity that the stack does not make, such as that of AKS's secrets-store add-on: its client id, and
    the object id for its role assignments.
    """

    client_id: pulumi.Input[str]
    object_id: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class NewIdentity:
    """A managed identity to create. `node_resource_group` has the nodes' scale sets; None if no cluster is known."""

    name: str
    node_resource_group: str | None


class KeyVaultUser(pulumi.ComponentResource):
    """Key Vault Secrets User on the vault, and nothing wider, for one managed identity; with
    `keyVaultUserScope: secrets` on each secret instead (`control_plane_identity.py`).

    Outputs: `client_id` (Output[str], in the SecretProviderClasses and `ARO_HCP_KEY_VAULT_USER_CLIENT_ID`),
    `principal_id` (Output[str]), `attach_command` (Output[str], None if the identity exists already): a created
    identity works only after the command has assigned it to the nodes.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        vault: Vault,
        identity: ExistingIdentity | NewIdentity,
        stack_owner: pulumi.Input[str] | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(resource_types.KEY_VAULT_USER, name, None, opts)
        self.attach_command: pulumi.Output[str] | None = None
        if isinstance(identity, NewIdentity):
            created = AssignedIdentity(
                f"{name}-identity",
                self,
                settings,
                stack_owner,
                resource_name_=identity.name,
                location=settings.location,
            )
            group = identity.node_resource_group or "<the nodes' resource group>"
            self.client_id, self.principal_id = created.client_id, created.principal_id
            self.attach_command = created.resource.id.apply(lambda known: attach_command(group, known))
        else:
            self.client_id = pulumi.Output.from_input(identity.client_id)
            self.principal_id = pulumi.Output.from_input(identity.object_id)
        if settings.key_vault_user_scope == "vault":
            RoleGrants(
                f"{name}-roles",
                RoleGrantsArgs(
                    infra_id=vault.vault_name,
                    component=KEY_VAULT_USER_COMPONENT,
                    role=KEY_VAULT_SECRETS_USER_ROLE,
                    scopes={"vault": vault.vault_id},
                    subscription_id=settings.subscription_id,
                    principal_id=self.principal_id,
                ),
                pulumi.ResourceOptions(parent=self, depends_on=[vault]),
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
