"""The sign-in to the management cluster, tried before the first resource."""

from __future__ import annotations

from typing import Final

import pulumi

from components.azure.aks_access import required_kinds
from components.preflight.cluster_reader import ClusterReader
from identity.aks.api_server import AccessRequirements, ApiServer
from identity.aks.permissions import needed
from identity.aks.stack_rights import rights_of
from identity.azure.errors import AccessError
from identity.settings import Settings

_READY_SECONDS: Final = 300  # how long Azure takes for a new role assignment, at most


async def check_access(settings: Settings, reader: ClusterReader | None) -> None:
    """Sign in to the cluster as the stack will, before the first resource. Raises RunError with cause and fix.

    A preview needs only a sign-in, so a read-only identity may run it. An update also waits until the deployer has its
    permissions and the API server serves the kinds of the stack's objects. If the stack makes the cluster, the same run
    may bring both: then `access_gate` waits for them.
    """
    cluster = settings.management_cluster
    if reader is None or cluster is None or cluster.kubeconfig is not None or not settings.writes_to_management_cluster:
        return
    if reader.aks.is_off:
        raise pulumi.RunError(f"idstack:managementCluster: {reader.aks.explanation}. Nothing was changed.")
    required = AccessRequirements() if cluster.create is not None else _requirements(settings)

    def wait_until_ready(server: ApiServer) -> None:
        server.check_sign_in()
        server.wait_for(required, _READY_SECONDS, log=pulumi.log.info)

    try:
        await reader.ask(wait_until_ready)
    except AccessError as error:
        raise pulumi.RunError(f"idstack:managementCluster: {error}. Nothing was changed.") from None


def _requirements(settings: Settings) -> AccessRequirements:
    """What an update requires before its first object; a preview requires nothing."""
    if pulumi.runtime.is_dry_run():
        return AccessRequirements()
    return AccessRequirements(needed(rights_of(settings)), required_kinds(settings))
