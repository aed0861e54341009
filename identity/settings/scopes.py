"""The scopes of a hosted cluster's role assignments: what the components register and `idstack forecast` counts."""

from __future__ import annotations

from collections.abc import Mapping

from identity.catalogue_rows import RoleGrant, Scope
from identity.naming import parse_arm_id, resource_group_id, vault_id
from identity.settings.hosted_clusters import HostedClusterSettings
from identity.settings.model import Settings


def scope_ids(settings: Settings, cluster: HostedClusterSettings, grant: RoleGrant) -> dict[str, str]:
    """ARM ids of the grant's scopes by a short name of each.

    They are resource groups, as in HyperShift's CLI, the key vaults of the KMS keys and the storage account of backups.
    A managed HSM is none: it assigns its roles itself (`hsm_keys`).
    """

    def group(name: str) -> str:
        return resource_group_id(settings.subscription_id, name)

    every = {
        Scope.MANAGED: group(cluster.resource_group),
        Scope.NSG: group(parse_arm_id(cluster.security_group_id).resource_group),
        Scope.VNET: group(parse_arm_id(cluster.vnet_id).resource_group),
        Scope.DNS: group(cluster.dns_zone_resource_group),
    }
    found = {
        scope.name.lower().replace("_", "-"): every.get(scope) or cluster.optional_resource(scope) or ""
        for scope in grant.scopes
        if scope is not Scope.KMS_VAULT
    }
    if Scope.KMS_VAULT in grant.scopes and cluster.kms is not None and not cluster.kms.is_managed_hsm:
        for vault, resource_group in cluster.kms.vaults.items():
            found[kms_vault_word(vault)] = vault_id(settings.subscription_id, resource_group, vault)
    return found


def hsm_keys(cluster: HostedClusterSettings, grant: RoleGrant) -> list[tuple[str, str]]:
    """The managed HSM and the name of each key on which the identity gets a role; none if the keys are in vaults.

    Two versions of a key are one; names are alike in every case.
    """
    if Scope.KMS_VAULT not in grant.scopes or cluster.kms is None or not cluster.kms.is_managed_hsm:
        return []
    found = {(each.key_vault_name.lower(), each.key_name.lower()): each for each in reversed(cluster.kms.keys)}
    return [(each.key_vault_name, each.key_name) for each in reversed(found.values())]


def kms_vault_word(vault: str) -> str:
    """The short name of one key vault: with another active key the role in the vault before must stay for a while."""
    return f"kms-vault-{vault.lower()}"


def distinct(scopes: Mapping[str, str]) -> dict[str, str]:
    """The scopes without duplicates, as their assignments would have the same name. Azure ignores case."""
    found: dict[str, tuple[str, str]] = {}
    for word, scope in scopes.items():
        found.setdefault(scope.lower(), (word, scope))
    return dict(found.values())
