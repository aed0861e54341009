"""The Key Vault that holds the credential documents of every hosted cluster of the stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import keyvault

from identity.naming import vault_id


@dataclass(frozen=True, kw_only=True)
class VaultArgs:
    """Inputs of `Vault`. `soft_delete_retention_days` is 7 to 90 and can not be changed later."""

    vault_name: str
    subscription_id: str
    tenant_id: str
    resource_group: str
    location: str
    soft_delete_retention_days: int
    purge_protection: bool
    public_network_access: bool
    default_action: str  # Allow or Deny
    allowed_ip_ranges: Sequence[str]
    allowed_subnet_ids: Sequence[str]
    tags: Mapping[str, str]
    protect: bool


class Vault(pulumi.ComponentResource):
    """Key Vault with RBAC authorization, soft delete and network rules.

    Outputs: `vault_name` and `vault_id` (str, known before the vault exists), `vault_uri` (Output[str]).
    """

    def __init__(self, name: str, args: VaultArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:Vault", name, None, opts)
        vault = keyvault.Vault(
            f"{name}-vault",
            vault_name=args.vault_name,
            resource_group_name=args.resource_group,
            location=args.location,
            tags=args.tags,
            properties=keyvault.VaultPropertiesArgs(
                tenant_id=args.tenant_id,
                sku=keyvault.SkuArgs(family=keyvault.SkuFamily.A, name=keyvault.SkuName.STANDARD),
                enable_rbac_authorization=True,
                enable_soft_delete=True,
                soft_delete_retention_in_days=args.soft_delete_retention_days,
                # Key Vault refuses an explicit false.
                enable_purge_protection=True if args.purge_protection else None,
                public_network_access="Enabled" if args.public_network_access else "Disabled",
                network_acls=keyvault.NetworkRuleSetArgs(
                    # Nodes and deployers are no "trusted services": nothing here needs the bypass.
                    bypass=keyvault.NetworkRuleBypassOptions.NONE,
                    default_action=args.default_action,
                    ip_rules=[keyvault.IPRuleArgs(value=each) for each in args.allowed_ip_ranges],
                    virtual_network_rules=[
                        keyvault.VirtualNetworkRuleArgs(id=each) for each in args.allowed_subnet_ids
                    ],
                ),
            ),
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        self.vault_name = args.vault_name
        self.vault_id = vault_id(args.subscription_id, args.resource_group, args.vault_name)
        self.vault_uri: pulumi.Output[str] = vault.properties.vault_uri
        self.register_outputs({"vault_name": self.vault_name, "vault_id": self.vault_id, "vault_uri": self.vault_uri})
