"""Refuses an update or a preview that removes the role on a vault while HyperShift still needs a key in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.preflight.cluster_reader import ClusterReader
from identity.aks.api_server import ApiServer
from identity.azure.errors import AccessError
from identity.hypershift import HOSTED_CLUSTER_PATH
from identity.outputs import StackOutputs, encryption_keys
from identity.settings import ConfigurationError, HostedClusterSettings, Settings
from identity.settings.rules.key_rotation import dropped_keys, dropped_places, finished, moved_keys, unfinished


async def check_key_rotations(settings: Settings, last: StackOutputs[Any], reader: ClusterReader | None) -> None:
    """Compare the keys with those of the `last` complete run, and with what HyperShift's status says of them.

    Raises ConfigurationError. Where the status cannot be read, the run warns and goes on.
    """
    if problems := [*moved_keys(settings, last), *dropped_keys(settings, last)]:
        raise ConfigurationError(problems)
    clusters = {
        index: cluster for index, cluster in enumerate(settings.hosted_clusters) if _is_asked(settings, cluster, last)
    }
    if not clusters:
        return
    try:
        documents = await _fetch_hosted_clusters(settings, reader, clusters)
    except AccessError as error:
        for cluster in clusters.values():
            for place in dropped_places(cluster, encryption_keys(last, cluster.name)):
                pulumi.log.warn(
                    f"the KMS identity of {cluster.name} loses its role on {place}, and whether HyperShift still needs "
                    f"the key there cannot be seen ({error}): status.secretEncryption of the "
                    "HostedCluster must say Completed"
                )
        return
    problems = [problem for index, document in documents.items() for problem in unfinished(settings, index, document)]
    if problems:
        raise ConfigurationError(problems)
    for index, document in documents.items():
        if (text := finished(settings, index, document)) is not None:
            pulumi.log.info(text)


def _is_asked(settings: Settings, cluster: HostedClusterSettings, last: StackOutputs[Any]) -> bool:
    """Whether HyperShift's status of the cluster counts: the stack writes its keys, or takes a role away."""
    if settings.makes_cluster_side(cluster) or cluster.kms is None:
        return False
    return cluster.hosted_cluster is not None or bool(dropped_places(cluster, encryption_keys(last, cluster.name)))


async def _fetch_hosted_clusters(
    settings: Settings, reader: ClusterReader | None, clusters: Mapping[int, HostedClusterSettings]
) -> dict[int, Mapping[str, Any]]:
    """The HostedClusters that exist, by index; raises AccessError."""
    if settings.management_cluster is None:
        raise AccessError("the stack has no managementCluster")
    if reader is None:
        return {}  # the stack makes the cluster, and it is not there, or nothing can run there yet

    def read(server: ApiServer) -> dict[int, Mapping[str, Any]]:
        documents = {
            index: server.read(HOSTED_CLUSTER_PATH.format(cluster.namespace, cluster.name))
            for index, cluster in clusters.items()
        }
        return {index: document for index, document in documents.items() if document is not None}

    return await reader.ask(read)
