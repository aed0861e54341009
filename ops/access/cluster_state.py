"""Reads what HyperShift and the CSI driver report on a stack's management cluster, as the stack's deployer."""

from __future__ import annotations

from functools import cache

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.errors import AccessError
from identity.outputs import StackOutputs
from ops.access.azure import deployer
from ops.access.management_cluster import api_server
from ops.outputs import cluster_state
from ops.outputs.cluster_state import ClusterState, VersionOf
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

# Of Microsoft.KeyVault/vaults/secrets, which a Reader may read: everything but the value.


def read_cluster_state(engine: Engine, outputs: StackOutputs[str]) -> ClusterState | None:
    """What can be read now; None if there is nothing to read. Nothing is raised: what cannot be read is named."""
    if not outputs.get("hostedClusters"):
        return None
    if "managementClusterId" not in outputs:
        if outputs.get("clusterSide") != "hypershift":
            return None
        return ClusterState(unread=("the management cluster: the stack's configuration has no managementCluster",))
    try:
        with (
            deployer(engine.stack, engine.configured(), local_cloud.of(engine.stack)) as clients,
            api_server(engine) as server,
        ):
            return cluster_state.read(server, outputs, _versions(clients, outputs.get("keyVaultId", "")))
    except (AccessError, CommandError) as error:
        return ClusterState(unread=(f"the management cluster: {error}",))


def _versions(clients: AzureClient, vault_id: str) -> VersionOf:
    @cache
    def version_of(secret: str) -> str | None:
        found = clients.resource(f"{vault_id}/secrets/{secret}", resource_types.KEY_VAULT_API)
        return None if found is None else str(found["properties"]["secretUriWithVersion"]).rpartition("/")[2]

    return version_of
