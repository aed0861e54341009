"""The management cluster, if the stack makes it, and the Kubernetes provider of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pulumi
from pulumi_kubernetes.provider import Provider as KubernetesProvider

from components.aks_access import AksAccess, access_args, opened
from components.lifecycle import ClusterGate
from components.management_cluster import ManagementCluster, ManagementClusterArgs
from components.providers import Deployer, Providers, management_cluster_id
from identity.settings import ManagementClusterSettings, Settings


def create_cluster(settings: Settings, providers: Providers, deployer: Deployer) -> ManagementCluster | None:
    """Make the management cluster, unless it exists already or there is none."""
    cluster = settings.management_cluster
    if cluster is None or cluster.create is None:
        return None
    return ManagementCluster(
        "management-cluster",
        ManagementClusterArgs(
            name=cluster.name,
            creation=cluster.create,
            resource_group=cluster.resource_group,
            location=settings.location,
            tenant_id=settings.tenant_id,
            subscription_id=settings.subscription_id,
            deployer=deployer.object_id,
            tags=settings.tags,
            protect=settings.protect,
        ),
        providers.options(),
    )


def with_cluster(settings: Settings, providers: Providers, created: ManagementCluster | None) -> Providers:
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
        gate = None if created is None else opened(settings, access, created)
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
