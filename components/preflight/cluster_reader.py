"""The management cluster as a run reads it before the first resource, with the sign-in that the stack will have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import pulumi

from components.azure.aks_access import PUBLIC_FQDN, cluster_login, signed_in
from components.azure.providers import Providers, management_cluster_id, provider_error
from components.kubernetes.provider import file_content
from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster, explained
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.settings import ManagementClusterSettings, Settings

_DENIED: Final = "AuthorizationFailed"  # ARM's code for a caller without a role that allows the action
_Answer = TypeVar("_Answer")


class ClusterReader:
    """Requests to the API server; the first one gets the kubeconfig. `aks` is the cluster as ARM describes it."""

    def __init__(
        self, settings: Settings, cluster: ManagementClusterSettings, providers: Providers, aks: AksCluster
    ) -> None:
        self.aks = aks
        self._settings = settings
        self._cluster = cluster
        self._providers = providers
        self._kubeconfig: Kubeconfig | None = None

    async def ask(self, question: Callable[[ApiServer], _Answer]) -> _Answer:
        """The answer; an AccessError says what the cluster's state explains of it."""
        try:
            if self._kubeconfig is None:
                self._kubeconfig = await self._sign_in()
            return await asyncio.to_thread(self._asked, self._kubeconfig, question)
        except AccessError as error:
            raise AccessError(explained(error, self.aks)) from None

    def _asked(self, kubeconfig: Kubeconfig, question: Callable[[ApiServer], _Answer]) -> _Answer:
        with ApiServer(kubeconfig, self.aks, context=self._cluster.context) as server:
            return question(server)

    async def _sign_in(self) -> Kubeconfig:
        """The kubeconfig of the configuration, else AKS's with the stack's own sign-in."""
        cluster = self._cluster
        if cluster.kubeconfig is not None:
            return Kubeconfig.parse(file_content(cluster, Path(cluster.kubeconfig)), cluster.kubeconfig)
        login, access = cluster_login(self._settings, cluster), cluster.access
        who = "Admin" if access.admin else "User"
        inputs: dict[str, Any] = {"resourceGroupName": cluster.resource_group, "resourceName": cluster.name}
        try:
            answer = await pulumi.runtime.invoke_async(
                f"azure-native:containerservice:listManagedCluster{who}Credentials",
                {**inputs, **({"serverFqdn": PUBLIC_FQDN} if access.public_fqdn else {})},
                pulumi.InvokeOptions(provider=self._providers.azure),
            )
        except Exception as error:
            reason = provider_error(error)
            fix = f"; give the identity that runs this the role Azure Kubernetes Service Cluster {who} Role there"
            raise AccessError(
                f'AKS does not hand out the kubeconfig of "{cluster.name}": {reason.rstrip(".")}'
                f"{fix if _DENIED in reason else ''}"
            ) from None
        return signed_in(answer["kubeconfigs"][0]["value"], None if access.admin else login, access.flavour)


def cluster_reader(settings: Settings, providers: Providers, aks: AksCluster | None) -> ClusterReader | None:
    """The reader; None without a management cluster, or until it exists.

    `aks` is the cluster as ARM describes it, None if ARM has none, or nothing can run there yet.
    """
    cluster = settings.management_cluster
    if cluster is None or (aks is None and cluster.kubeconfig is None):
        return None
    return ClusterReader(settings, cluster, providers, aks or AksCluster(management_cluster_id(settings, cluster)))
