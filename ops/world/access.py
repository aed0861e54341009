"""The stack's permissions and kinds on its management cluster, for the user who signed in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from identity.aks.api_server import AccessRequirements, ApiServer
from identity.aks.kinds import CustomKind, required_kinds
from identity.aks.permissions import Permission
from identity.azure.errors import AccessError, AzureRefusedError
from identity.settings import Settings
from ops.stack.configuration import named_clusters
from ops.stack.errors import CommandError, NoManagementClusterError
from ops.world.seen import Unread
from ops.world.stack_world import SeenAccess

_READS: Final = frozenset({"get", "list", "watch"})


def read_access(
    server: ApiServer, configuration: Mapping[str, Any], needed: tuple[Permission, ...]
) -> SeenAccess | Unread:
    """Sign in, and check the permissions and every kind that a stack with this configuration needs."""
    try:
        server.check_sign_in()
        missing = server.missing(AccessRequirements(needed, _kinds(configuration)))
    except AccessError as error:
        return refused(error)
    return SeenAccess(
        server=server.server,
        who=server.who,
        missing=tuple(missing),
        hint=server.hint,
        is_read_only=_is_read_only(needed, server.lacking),
    )


def refused(error: AccessError | CommandError) -> SeenAccess | Unread:
    """A failed access; unread if the caller lacks the right to try it."""
    text = " ".join(str(error).split())
    is_forbidden = isinstance(error, AzureRefusedError) and error.is_forbidden
    if is_forbidden or isinstance(error, NoManagementClusterError):
        return Unread.because(error, text)
    return SeenAccess(
        server="the management cluster",
        who="the stack",
        missing=(f"a sign-in: {text}",),
        hint="correct what the error names (docs/guides/aks-access.md)",
        is_read_only=False,
    )


def _is_read_only(needed: Collection[Permission], lacking: Collection[Permission]) -> bool:
    reads = [permission for permission in needed if permission.verb in _READS]
    writes = [permission for permission in needed if permission.verb not in _READS]
    return set(writes) <= set(lacking) and not set(reads) <= set(lacking)


def _kinds(configuration: Mapping[str, Any]) -> tuple[CustomKind, ...]:
    """The custom kinds of the stack's objects."""
    clusters = list(named_clusters(configuration.get("hostedClusters")))
    side = configuration.get("clusterSide", Settings.model_fields["cluster_side"].default)
    have_credentials = any(cluster.get("authentication") != "workload-identities" for cluster in clusters)
    return required_kinds(
        makes_cluster_side=side == "stack" and have_credentials,
        applies_hosted_clusters=any(cluster.get("hostedCluster") for cluster in clusters),
    )
