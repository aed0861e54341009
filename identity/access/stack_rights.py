"""What a stack's configuration needs on the management cluster, namespace by namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from identity.access.permissions import NamespaceRights, in_namespace
from identity.catalogue import CONTROL_PLANE
from identity.settings import HostedClusterSettings, Settings

# Of the consumers. All of them: of an identity that is switched off the next `up` deletes them.
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
    for each in settings.hosted_clusters:
        if each.hosted_cluster is not None:  # without it the stack knows of a signing key, and writes it nowhere
            homes.setdefault(each.namespace, []).append(each)
    return (*_cluster_sides(settings), *(_home(namespace, found) for namespace, found in homes.items()))


def _cluster_sides(settings: Settings) -> Iterator[NamespaceRights]:
    for cluster in filter(settings.makes_cluster_side, settings.hosted_clusters):
        yield in_namespace(
            cluster.namespace_name,
            cluster_side=True,
            network_policies=settings.block_instance_metadata,
            secrets=_CONFIGURATIONS,
        )


def _home(namespace: str, clusters: list[HostedClusterSettings]) -> NamespaceRights:
    """Of the namespace of HostedClusters, where the Secrets with their keys are."""
    keys = [each.signing_key_secret for each in clusters if each.signing_key is not None]
    keys += [each.encryption_key_secret for each in clusters if each.encryption_key_secret is not None]
    return in_namespace(namespace, hosted_clusters=True, secrets=keys)
