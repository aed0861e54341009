"""The Kubernetes provider of the management cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pulumi
from pulumi_kubernetes.provider import Provider as KubernetesProvider

from components.azure.aks_access import AksAccess, access_args, access_gate
from components.azure.management_cluster import ManagementCluster
from components.azure.plugin_resources import ClusterGate
from components.azure.providers import Providers, management_cluster_id
from identity.settings import ManagementClusterSettings, Settings


def with_kubernetes_provider(settings: Settings, providers: Providers, created: ManagementCluster | None) -> Providers:
    """The providers with that of the management cluster, if the stack makes objects there.

    Raises RunError if a kubeconfig of the user's own can not be read.
    """
    cluster = settings.management_cluster
    gate: ClusterGate | None = None
    if not settings.writes_to_management_cluster or cluster is None:
        return providers
    if cluster.kubeconfig is not None:
        # The contents: a path in the state would mean another file on the next machine.
        kubeconfig = pulumi.Output.secret(_contents(cluster, Path(cluster.kubeconfig)))
    else:
        access = AksAccess("cluster-access", access_args(settings, cluster, created), providers.options())
        kubeconfig = access.kubeconfig
        gate = None if created is None else access_gate(settings, access, created)
    return replace(
        providers,
        kubernetes=KubernetesProvider(
            "kubernetes",
            kubeconfig=kubeconfig,
            context=cluster.context,
            # While it stays, no change of address or certificate authority replaces everything on the cluster.
            cluster_identifier=management_cluster_id(settings, cluster),
            opts=None if gate is None else pulumi.ResourceOptions(depends_on=[gate]),
        ),
    )


def _contents(cluster: ManagementClusterSettings, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pulumi.RunError(
            f'idstack:managementCluster.kubeconfig: found "{path}", which can not be read ({error}). Accepted is the '
            f"path of a kubeconfig file, or nothing: the stack makes one of its own for "
            f"{cluster.resource_group}/{cluster.name} then."
        ) from None
