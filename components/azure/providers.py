"""The explicit providers that every resource uses.

A stack file disables default providers, so that no resource reaches a tenant that the configuration does not name. That
of the project's own plugin, which has no configuration, is explicit where the file disables it, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import pulumi
from pulumi_azure_native.provider import Provider as AzureProvider
from pulumi_azuread.provider import Provider as EntraProvider
from pulumi_kubernetes.provider import Provider as KubernetesProvider

from identity.credentials.secret_tags import OWNER
from identity.naming import STACK_TAG, owner_mark, stack_tag
from identity.settings import Settings
from identity.settings.schema.problems import NAMESPACE


@dataclass(frozen=True, kw_only=True)
class ClusterConnection:
    """How the Kubernetes provider reaches the management cluster: `cluster_id` is its ARM id, `kubeconfig` a secret."""

    cluster_id: str
    kubeconfig: pulumi.Output[str]
    context: str | None


@dataclass(frozen=True)
class Providers:
    """One provider per plugin; `kubernetes` and `connection` are None if the stack has nothing in the cluster.

    `own` is None where the engine's default one serves.
    """

    azure: AzureProvider
    entra: EntraProvider
    own: pulumi.ProviderResource | None = None
    kubernetes: KubernetesProvider | None = None
    connection: ClusterConnection | None = None

    def options(self) -> pulumi.ResourceOptions:
        """Options that pass all of them to a component and its children."""
        others = [provider for provider in (self.own, self.kubernetes) if provider is not None]
        return pulumi.ResourceOptions(providers=[self.azure, self.entra, *others])


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
        own=pulumi.ProviderResource(NAMESPACE, NAMESPACE, {}) if _DISABLING & _disabled() else None,
    )


# The plugin's name, which is that of the configuration's keys, and that of all.
_DISABLING: Final = frozenset({NAMESPACE, "*"})


def _disabled() -> frozenset[str]:
    return frozenset(json.loads(pulumi.runtime.get_config_env().get("pulumi:disable-default-providers", "[]")))


def provider_error(error: object) -> str:
    """The reason of a failed provider function in one line, without the prefix that the engine adds."""
    return " ".join(str(error).rpartition("returned an error: ")[2].split())


async def ask_own_plugin(function: str, question: Mapping[str, Any], options: pulumi.InvokeOptions) -> Any:
    """The answer of the plugin `idstack`; raises RunError with its reason, or that of its end if it was killed."""
    try:
        return await pulumi.runtime.invoke_async(function, {**question}, options)
    except Exception as error:
        raise pulumi.RunError(provider_error(error)) from None


# Public clients by which a person signs in: the Azure CLI and Azure PowerShell (learn.microsoft.com/troubleshoot/entra,
# "Verify first-party Microsoft applications"). A token that a service principal gets through them names itself.
_USER_CLIENT_IDS: Final = frozenset({"04b07795-8ddb-461a-bbee-02f9e1bf7b46", "1950a258-227b-4e31-a9cf-717495945fc2"})


@dataclass(frozen=True, kw_only=True)
class Deployer:
    """The identity that runs the stack: its tenant, its object id, and whether it is an application."""

    tenant_id: str
    object_id: str
    is_service_principal: bool

    @classmethod
    def of(cls, client_config: dict[str, Any]) -> Self:
        """From azure-native's `getClientConfig`, whose `clientId` is the client that the token was issued to."""
        return cls(
            tenant_id=client_config["tenantId"].lower(),
            object_id=client_config["objectId"],
            is_service_principal=client_config["clientId"].lower() not in _USER_CLIENT_IDS,
        )


def application_tags(name: str, stack_owner: pulumi.Input[str] | None) -> list[pulumi.Input[str]]:
    """The tags of an Entra application; `name` is that of its component, unique in the stack."""
    tag = f"{stack_tag(pulumi.get_project(), pulumi.get_stack())}:{name}"
    if stack_owner is None:
        return [tag]
    return [tag, pulumi.Output.from_input(stack_owner).apply(owner_mark)]


def identity_tags(settings: Settings, stack_owner: pulumi.Input[str] | None) -> dict[str, pulumi.Input[str]]:
    """The tags of a managed identity, with the configured ones."""
    tag = stack_tag(pulumi.get_project(), pulumi.get_stack())
    owner = {} if stack_owner is None else {OWNER: stack_owner}
    return {**settings.tags, STACK_TAG: tag, **owner}
