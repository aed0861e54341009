"""The managed identities that the stack makes for a hosted cluster."""

from __future__ import annotations

from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity
from identity.naming import data_plane_identity_name, managed_identity_id
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.model import Settings


def managed_identity_of(
    settings: Settings, cluster: HostedClusterSettings, row: DataPlaneIdentity | OptionalManagedIdentity
) -> str:
    """ARM id of the managed identity that the stack makes for a row."""
    existing = cluster.federated_identity(row.field).name if isinstance(row, DataPlaneIdentity) else None
    name = existing or data_plane_identity_name(cluster.name, row.name, cluster.infra_id)
    return managed_identity_id(settings.subscription_id, settings.resource_group, name)
