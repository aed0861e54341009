"""The sign-in to the management cluster, tried before the first resource."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pulumi

from components.azure.aks_access import PUBLIC_FQDN, access_args, required_kinds, signed_in
from components.azure.providers import Providers, provider_error
from components.kubernetes.provider import file_content
from identity.aks.api_server import AccessRequirements, ApiServer
from identity.aks.azure_rbac import AksCluster, explained
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.permissions import needed
from identity.aks.stack_rights import rights_of
from identity.azure.errors import AccessError
from identity.settings import ManagementClusterSettings, Settings

_DENIED: Final = "AuthorizationFailed"  # ARM's code for a caller without a role that allows the action
_READY_SECONDS: Final = 300  # how long Azure takes for a new role assignment, at most


async def check_access(settings: Settings, providers: Providers, aks: AksCluster | None) -> Kubeconfig | None:
    """Sign in to the cluster as the stack will, before the first resource. Raises RunError with cause and fix.

    Returns the kubeconfig that AKS has given out, None if it was not asked.
    `aks` is the management cluster as ARM describes it, None if there is none, or none yet.
    A preview needs only a sign-in, so a read-only identity may run it. An update also waits until the deployer has its
    permissions and the API server serves the kinds of the stack's objects. If the stack makes the cluster, the same run
    may bring both: then `access_gate` waits for them.
    """
    cluster = settings.management_cluster
    if cluster is None or aks is None or not settings.writes_to_management_cluster or cluster.kubeconfig is not None:
        return None
    if aks.is_off:
        raise pulumi.RunError(f"idstack:managementCluster: {aks.explanation}. Nothing was changed.")
    try:
        kubeconfig = await aks_kubeconfig(settings, cluster, providers)
        required = AccessRequirements() if cluster.create is not None else _requirements(settings)
        await asyncio.to_thread(_wait_until_ready, kubeconfig, aks, required)
    except AccessError as error:
        raise pulumi.RunError(f"idstack:managementCluster: {explained(error, aks)}. Nothing was changed.") from None
    return kubeconfig


def _requirements(settings: Settings) -> AccessRequirements:
    """What an update requires before its first object; a preview requires nothing."""
    if pulumi.runtime.is_dry_run():
        return AccessRequirements()
    return AccessRequirements(needed(rights_of(settings)), required_kinds(settings))


async def cluster_kubeconfig(
    settings: Settings, cluster: ManagementClusterSettings, providers: Providers, given_out: Kubeconfig | None
) -> Kubeconfig:
    """The kubeconfig of the configuration, else what AKS has given out, for which it is asked once; AccessError."""
    if cluster.kubeconfig is not None:
        return Kubeconfig.parse(file_content(cluster, Path(cluster.kubeconfig)), cluster.kubeconfig)
    return given_out or await aks_kubeconfig(settings, cluster, providers)


async def aks_kubeconfig(settings: Settings, cluster: ManagementClusterSettings, providers: Providers) -> Kubeconfig:
    """The kubeconfig that AKS gives out, with the stack's own sign-in; raises AccessError."""
    args, access = access_args(settings, cluster), cluster.access
    who = "Admin" if access.admin else "User"
    inputs: Mapping[str, Any] = {"resourceGroupName": cluster.resource_group, "resourceName": cluster.name}
    try:
        answer = await pulumi.runtime.invoke_async(
            f"azure-native:containerservice:listManagedCluster{who}Credentials",
            {**inputs, **({"serverFqdn": PUBLIC_FQDN} if access.public_fqdn else {})},
            pulumi.InvokeOptions(provider=providers.azure),
        )
    except Exception as error:
        reason = provider_error(error)
        fix = f"; give the deployer the role Azure Kubernetes Service Cluster {who} Role on the cluster"
        raise AccessError(
            f'AKS does not hand out the kubeconfig of "{cluster.name}": {reason.rstrip(".")}'
            f"{fix if _DENIED in reason else ''}"
        ) from None
    return signed_in(answer["kubeconfigs"][0]["value"], None if access.admin else args.login, access.flavour)


def _wait_until_ready(kubeconfig: Kubeconfig, aks: AksCluster, required: AccessRequirements) -> None:
    with ApiServer(kubeconfig, aks) as server:
        server.check_sign_in()
        server.wait_for(required, _READY_SECONDS, log=pulumi.log.info)
