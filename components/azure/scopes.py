"""The scopes of a hosted cluster's role assignments."""

from __future__ import annotations

from identity.catalogue_rows import RoleGrant, Scope
from identity.naming import parse_arm_id, resource_group_id, vault_id
from identity.settings import HostedClusterSettings, Settings


def scope_ids(settings: Settings, cluster: HostedClusterSettings, grant: RoleGrant) -> dict[str, str]:
    """ARM ids of the grant's scopes by a short name of each.

    They are resource groups, as in HyperShift's CLI, and the key vault of the KMS key.
    """

    def group(name: str) -> str:
        return resource_group_id(settings.subscription_id, name)

    every = {
        Scope.MANAGED: group(cluster.resource_group),
        Scope.NSG: group(parse_arm_id(cluster.security_group_id).resource_group),
        Scope.VNET: group(parse_arm_id(cluster.vnet_id).resource_group),
        Scope.DNS: group(cluster.dns_zone_resource_group),
        Scope.KMS_VAULT: vault_id(
            settings.subscription_id, cluster.kms.key_vault_resource_group, cluster.kms.active_key.key_vault_name
        ),
    }
    return {scope.name.lower().replace("_", "-"): every[scope] for scope in grant.scopes}
