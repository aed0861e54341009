"""The Kubernetes provider of the management cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pulumi
from pulumi_kubernetes.provider import Provider as KubernetesProvider

from components.azure.aks_access import access_gate, aks_kubeconfig
from components.azure.management_cluster import ManagementCluster
from components.azure.providers import ClusterConnection, Providers, management_cluster_id
from components.plugin.resources import ClusterGate
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.settings import ManagementClusterSettings, Settings


def with_kubernetes_provider(
    settings: Settings, providers: Providers, created: ManagementCluster | None, *, hands_over: bool = False
) -> Providers:
    """Add the management cluster's provider, if the stack makes objects there, or hands them over in this run.

    Raises RunError if the kubeconfig that the settings name cannot be read, AccessError if AKS's cannot be used.
    """
    cluster = settings.management_cluster
    gate: ClusterGate | None = None
    if cluster is None or not (settings.writes_to_management_cluster or hands_over):
        return providers
    if cluster.kubeconfig is not None:
        # The content, because a path in the state would mean another file on the next machine.
        kubeconfig = pulumi.Output.secret(file_content(cluster, Path(cluster.kubeconfig)))
    else:
        name = cluster.name if created is None else created.name
        kubeconfig = aks_kubeconfig(settings, cluster, name, providers.azure)
        gate = None if created is None else access_gate(settings, kubeconfig, created, providers.own)
    full_id = management_cluster_id(settings, cluster)
    return replace(
        providers,
        connection=ClusterConnection(cluster_id=full_id, kubeconfig=kubeconfig, context=cluster.context),
        kubernetes=KubernetesProvider(
            "kubernetes",
            kubeconfig=kubeconfig,
            context=cluster.context,
            # As long as it stays the same, a new address or certificate authority replaces no object on the cluster.
            cluster_identifier=full_id,
            # A manual change adds a second field owner, and server-side apply would refuse to repair it (decision
            # record 0035).
            enable_patch_force=True,
            opts=None if gate is None else pulumi.ResourceOptions(depends_on=[gate]),
        ),
    )


def file_content(cluster: ManagementClusterSettings, path: Path) -> str:
    """The kubeconfig that the settings name, with the files beside it; raises RunError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        read = Kubeconfig.parse(text, str(path), path.absolute().parent)
        flattened = read.flattened()
        return text if flattened is read else flattened.to_yaml()
    except (OSError, UnicodeDecodeError, AccessError) as error:
        raise pulumi.RunError(
            f'idstack:managementCluster.kubeconfig: found "{path}", which cannot be read ({error}). Accepted is the '
            f"path of a kubeconfig file, or nothing: then the stack makes its own for "
            f"{cluster.resource_group}/{cluster.name}."
        ) from None
