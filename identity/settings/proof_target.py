"""The target of a hosted cluster's proof calls, from its settings."""

from __future__ import annotations

from dataclasses import replace

from identity.catalogue_rows import ProofTarget, Scope
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings, Settings


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
