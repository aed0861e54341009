"""The scopes of a hosted cluster's role assignments, for components and the deployer, and the target of proof calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from identity.catalogue_rows import ControlPlaneIdentity, ProofTarget, RoleGrant, Scope
from identity.naming import parse_arm_id, vault_id
from identity.roles import Role
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.model import Settings


def control_plane_grant(settings: Settings, cluster: HostedClusterSettings, row: ControlPlaneIdentity) -> RoleGrant:
    """The identity's role and scopes: those of `roles`, or its `customRole` at the same scopes."""
    grant, kept = row.grant(settings.roles), cluster.identity(row).custom_role
    return grant if kept is None else RoleGrant(Role(f"custom role of {row.field}", kept.lower()), grant.scopes)


def grants_of(settings: Settings, cluster: HostedClusterSettings) -> list[RoleGrant]:
    """The roles of all identities of the hosted cluster."""
    return [
        *(control_plane_grant(settings, cluster, row) for row in cluster.enabled_rows),
        *(row.grant(settings.roles) for row in cluster.federated_rows),
        *(grant for row in cluster.optional_rows for grant in row.grants),
    ]


def scope_ids(settings: Settings, cluster: HostedClusterSettings, grant: RoleGrant) -> dict[str, str]:
    """ARM ids of the grant's scopes by short name, without those that the hosted cluster does not have.

    A managed HSM is not a scope: it assigns its roles itself (`hsm_keys`).
    """
    ids = _scope_ids(settings, cluster)
    scopes: dict[str, str] = {}
    for scope in grant.scopes:
        if scope is Scope.KMS_VAULT:
            scopes |= _kms_vaults(settings, cluster)
        elif scope is Scope.ZONES:
            scopes |= _zones(cluster, ids[Scope.DNS])
        elif scope in ids:
            scopes[_word(scope)] = ids[scope]
    return scopes


def _scope_ids(settings: Settings, cluster: HostedClusterSettings) -> dict[Scope, str]:
    """The ids of the scopes that are one configured resource or resource group."""
    group = settings.group_id
    ids = {
        Scope.MANAGED: group(cluster.resource_group),
        Scope.NSG: group(parse_arm_id(cluster.security_group_id).resource_group),
        Scope.VNET: group(parse_arm_id(cluster.vnet_id).resource_group),
        Scope.DNS: group(cluster.dns_zone_resource_group),
        Scope.NETWORK: cluster.vnet_id,
        Scope.SUBNET: cluster.subnet_id,
        Scope.SECURITY_GROUP: cluster.security_group_id,
        Scope.ROUTE_TABLE: cluster.route_table_id,
        Scope.NAT_GATEWAY: cluster.nat_gateway_id,
        Scope.BACKUP_STORAGE: cluster.backup_storage_account_id,
        Scope.REGISTRY: cluster.container_registry_id,
        Scope.EXTERNAL_ZONE: cluster.external_dns_zone_id,
        Scope.EXTERNAL_ZONE_GROUP: None
        if cluster.external_dns_zone_id is None
        else group(parse_arm_id(cluster.external_dns_zone_id).resource_group),
    }
    return {scope: arm_id for scope, arm_id in ids.items() if arm_id is not None}


def _zones(cluster: HostedClusterSettings, group: str) -> dict[str, str]:
    """The zones; the resource group of the public zone if the configuration does not name the zone."""
    public, private = (None, None) if cluster.dns is None else (cluster.dns.public_zone_id, cluster.dns.private_zone_id)
    zones = {"public-zone": public, "private-zone": private, _word(Scope.DNS): None if public else group}
    return {word: arm_id for word, arm_id in zones.items() if arm_id is not None}


def _kms_vaults(settings: Settings, cluster: HostedClusterSettings) -> dict[str, str]:
    if cluster.kms is None or cluster.kms.is_managed_hsm:
        return {}
    return {
        kms_vault_label(vault): vault_id(settings.subscription_id, resource_group, vault)
        for vault, resource_group in cluster.kms.vaults.items()
    }


def _word(scope: Scope) -> str:
    return scope.name.lower().replace("_", "-")


def hsm_keys(cluster: HostedClusterSettings, grant: RoleGrant) -> list[tuple[str, str]]:
    """The managed HSM and the name of every key on which the identity gets a role; empty if the keys are in vaults.

    Two versions of a key count as one; case is ignored.
    """
    if Scope.KMS_VAULT not in grant.scopes or cluster.kms is None or not cluster.kms.is_managed_hsm:
        return []
    keys = {(key.key_vault_name.lower(), key.key_name.lower()): key for key in reversed(cluster.kms.keys)}
    return [(key.key_vault_name, key.key_name) for key in reversed(keys.values())]


def kms_vault_label(vault: str) -> str:
    """The short name of one key vault. It names the vault, because a rotation keeps the role on the previous one."""
    return f"kms-vault-{vault.lower()}"


def outermost(scopes: Mapping[str, str]) -> dict[str, str]:
    """The scopes without those equal to or inside of another one, where the role holds as well. Azure ignores case."""
    by_id: dict[str, tuple[str, str]] = {}
    for word, scope in scopes.items():
        by_id.setdefault(scope.lower(), (word, scope))
    return {
        word: scope
        for key, (word, scope) in by_id.items()
        if not any(key.startswith(f"{other}/") for other in by_id if other != key)
    }


def proof_target(settings: Settings, cluster: HostedClusterSettings) -> ProofTarget:
    """The target of one hosted cluster's proof calls."""
    kms, subnet = cluster.kms, parse_arm_id(cluster.subnet_id)
    target = ProofTarget(
        subscription=settings.subscription_id,
        managed=cluster.resource_group,
        vnet_group=subnet.resource_group,
        vnet=subnet.names[0],
        subnet=subnet.name,
        backup_storage=cluster.optional_resource(Scope.BACKUP_STORAGE) or "",
    )
    if kms is None:
        return target
    return replace(
        target,
        key_vault=kms.active_key.key_vault_name,
        key=kms.active_key.key_name,
        key_version=kms.active_key.key_version,
        is_managed_hsm=kms.is_managed_hsm,
    )
