"""The explicit providers every resource uses, and the check that they speak for the configured tenant.

There are no default providers: a stack file disables them, so that a resource can not reach a tenant that nobody named.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native.provider import Provider as AzureProvider
from pulumi_azuread.provider import Provider as EntraProvider
from pulumi_kubernetes.provider import Provider as KubernetesProvider

from identity.access.aks import cluster_id
from identity.settings import ManagementClusterSettings, Settings


@dataclass(frozen=True)
class Providers:
    """One provider per plugin; `kubernetes` is None when the stack makes nothing in the management cluster."""

    azure: AzureProvider
    entra: EntraProvider
    kubernetes: KubernetesProvider | None = None

    def options(self) -> pulumi.ResourceOptions:
        """Options that hand all of them to a component and its children."""
        every = (self.azure, self.entra, self.kubernetes)
        return pulumi.ResourceOptions(providers=[each for each in every if each is not None])


@dataclass(frozen=True, kw_only=True)
class Deployer:
    """Who runs the stack, as the provider signed in."""

    tenant_id: str
    object_id: str


def register_providers(settings: Settings) -> Providers:
    """Register the Azure providers with tenant and subscription pinned; who signs in, the environment says (ARM_*, az).

    That of Kubernetes comes once the cluster was found (`components/cluster_provider.py`).
    """
    # azure-native and azuread name the clouds as CAPZ does.
    environment = settings.cloud.capz_cloud_type
    return Providers(
        azure=AzureProvider(
            "azure", tenant_id=settings.tenant_id, subscription_id=settings.subscription_id, environment=environment
        ),
        entra=EntraProvider("entra", tenant_id=settings.tenant_id, environment=environment),
    )


async def check_tenant(settings: Settings, providers: Providers) -> Deployer:
    """Compare the provider's tenant with the configured one, before any other resource; raises RunError."""
    try:
        found = await pulumi.runtime.invoke_async(
            "azure-native:authorization:getClientConfig", {}, pulumi.InvokeOptions(provider=providers.azure)
        )
    except Exception as error:
        reason = provider_said(error).rstrip(".")
        raise pulumi.RunError(
            f"the deployer can not sign in to Azure: {reason}. Nothing was changed. Sign in with "
            f"`az login --tenant {settings.tenant_id}` (in CI: set the ARM_* variables of the providers)."
        ) from None
    if found["tenantId"].lower() != settings.tenant_id:
        raise pulumi.RunError(
            f"signed in to the tenant {found['tenantId']}, but idstack:tenantId is {settings.tenant_id}. "
            f"Nothing was changed. Sign in with `az login --tenant {settings.tenant_id}` (in CI: set ARM_TENANT_ID), "
            f"or correct it with `pulumi config set idstack:tenantId {found['tenantId']}`."
        )
    return Deployer(tenant_id=settings.tenant_id, object_id=found["objectId"])


def provider_said(error: object) -> str:
    """A failed function's reason in one line, without the function's name that the engine puts in front."""
    return " ".join(str(error).rpartition("returned an error: ")[2].split())


def management_cluster_id(settings: Settings, cluster: ManagementClusterSettings) -> str:
    """ARM id of the AKS cluster."""
    return cluster_id(settings.subscription_id, cluster.resource_group, cluster.name)
