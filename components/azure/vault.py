"""The Key Vault that holds the credential documents of every hosted cluster of the stack."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import keyvault

from identity.naming import vault_id
from identity.settings import Settings, VaultSettings


@dataclass(frozen=True, kw_only=True)
class VaultArgs:
    """Inputs of `Vault`. `vault` is `settings.vault`."""

    settings: Settings
    vault: VaultSettings


class Vault(pulumi.ComponentResource):
    """Key Vault with RBAC authorization, soft delete and network rules.

    Outputs: `vault_name` and `vault_id` (str, known before the vault exists), `vault_uri` (Output[str]).
    """

    def __init__(self, name: str, args: VaultArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:Vault", name, None, opts)
        settings, vault_settings = args.settings, args.vault
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
        self.vault_id = vault_id(settings.subscription_id, settings.resource_group, vault_settings.name)
        self.vault_uri: pulumi.Output[str] = vault.properties.vault_uri
        self.register_outputs({"vault_name": self.vault_name, "vault_id": self.vault_id, "vault_uri": self.vault_uri})
