"""`ClusterGateResource`: proves that a new management cluster can be used, before anything is put into it."""

from __future__ import annotations

from datetime import UTC, datetime

from identity.aks import permissions
from identity.aks.api_server import AccessRequirements, ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.kinds import kind_of
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.credentials import rfc3339
from identity.plugin_schema import ClusterGateInputs, ClusterGateOutputs
from plugin import PluginError, log_info, pause
from provider.resource import TypedResource, name_of


class ClusterGateResource(TypedResource[ClusterGateInputs[str], ClusterGateOutputs[str]]):
    """Waits for a cluster; waits again if the cluster, its address or what it must serve changes."""

    inputs = ClusterGateInputs
    outputs = ClusterGateOutputs

    def make(self, urn: str, inputs: ClusterGateInputs[str]) -> tuple[str, ClusterGateOutputs[str]]:
        """Wait for the cluster."""
        requirements = AccessRequirements(permissions.permissions(), tuple(map(kind_of, inputs["kinds"])))
        aks = AksCluster(inputs["clusterId"], inputs["hasAzureRbac"])
        try:
            kubeconfig = Kubeconfig.parse(inputs["kubeconfig"], "the kubeconfig of the new cluster")
            with ApiServer(kubeconfig, aks) as server:
                server.wait_for(requirements, inputs["timeoutSeconds"], is_new=True, log=log_info, sleep=pause)
        except AccessError as error:
            raise PluginError(f"{error}. The cluster stays; bring the stack up again when that is fixed") from None
        return name_of(urn), {"openedAt": rfc3339.render(datetime.now(UTC))}

    def keeps_outputs(self, old: ClusterGateInputs[str], new: ClusterGateInputs[str]) -> bool:
        """A changed time-out needs no new wait."""
        return {**old, "timeoutSeconds": 0} == {**new, "timeoutSeconds": 0}
