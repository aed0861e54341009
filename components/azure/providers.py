"""The explicit providers that every resource uses.

A stack file disables default providers, so that no resource reaches a tenant that the configuration does not name.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native.provider import Provider as AzureProvider
from pulumi_azuread.provider import Provider as EntraProvider
from pulumi_kubernetes.provider import Provider as KubernetesProvider

from identity.naming import cluster_id
from identity.settings import ManagementClusterSettings, Settings


@dataclass(frozen=True, kw_only=True)
class ClusterConnection:
    """How the Kubernetes provider reaches the management cluster: `cluster_id` is its ARM id, `kubeconfig` a secret."""

    cluster_id: str
    kubeconfig: pulumi.Output[str]
    context: str | None


@dataclass(frozen=True)
class Providers:
    """One provider per plugin; `kubernetes` and `connection` are None if the stack has nothing in the cluster."""

    azure: AzureProvider
    entra: EntraProvider
    kubernetes: KubernetesProvider | None = None
    connection: ClusterConnection | None = None

    def options(self) -> pulumi.ResourceOptions:
        """Options that pass all of them to a component and its children."""
        kubernetes = [] if self.kubernetes is None else [self.kubernetes]
        return pulumi.ResourceOptions(providers=[self.azure, self.entra, *kubernetes])


def register_providers(settings: Settings) -> Providers:
    """Register the Azure providers with tenant and subscription pinned; the environment signs them in (ARM_*, az).

    The Kubernetes provider comes after the look-up of the cluster (`components/kubernetes/provider.py`).
    """
    # azure-native and azuread name the clouds as CAPZ does.
    environment = settings.cloud.capz_cloud_type
    return Providers(
        azure=AzureProvider(
            "azure", tenant_id=settings.tenant_id, subscription_id=settings.subscription_id, environment=environment
        ),
        entra=EntraProvider("entra", tenant_id=settings.tenant_id, environment=environment),
    )


def provider_error(error: object) -> str:
    """The reason of a failed provider function in one line, without the prefix that the engine adds."""
    return " ".join(str(error).rpartition("returned an error: ")[2].split())


def management_cluster_id(settings: Settings, cluster: ManagementClusterSettings) -> str:
    """ARM id of the AKS cluster."""
    return cluster_id(settings.subscription_id, cluster.resource_group, cluster.name)
