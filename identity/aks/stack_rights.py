"""What a stack's configuration needs on the management cluster, namespace by namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from identity.aks.permissions import NamespaceRights, in_namespace
from identity.catalogue import CONTROL_PLANE
from identity.settings import HostedClusterSettings, Settings

# Of all consumers: the next `up` deletes those of a disabled identity.
_CONFIGURATIONS: Final = tuple(
    dict.fromkeys(
        file.secret
        for row in CONTROL_PLANE
        for mount in row.mounts
        for file in (mount.config, mount.platform)
        if file is not None
    )
)


def rights_of(settings: Settings) -> tuple[NamespaceRights, ...]:
    """The rights in each namespace in which the stack has objects; none if it has none on the management cluster."""
    homes: dict[str, list[HostedClusterSettings]] = {}
    for cluster in settings.hosted_clusters:
        if cluster.hosted_cluster is not None:  # without it the stack writes no Secret, not even of a signing key
            homes.setdefault(cluster.namespace, []).append(cluster)
    return (*_cluster_sides(settings), *(_home(namespace, clusters) for namespace, clusters in homes.items()))


def _cluster_sides(settings: Settings) -> Iterator[NamespaceRights]:
    for cluster in filter(settings.makes_cluster_side, settings.hosted_clusters):
        yield in_namespace(
            cluster.namespace_name,
            cluster_side=True,
            network_policies=settings.block_instance_metadata,
            secrets=_CONFIGURATIONS,
        )


def _home(namespace: str, clusters: list[HostedClusterSettings]) -> NamespaceRights:
    """The rights in a namespace of HostedClusters, which has the Secrets with their keys."""
    keys = [cluster.signing_key_secret for cluster in clusters if cluster.signing_key is not None]
    keys += [cluster.encryption_key_secret for cluster in clusters if cluster.encryption_key_secret is not None]
    return in_namespace(namespace, hosted_clusters=True, secrets=keys)
