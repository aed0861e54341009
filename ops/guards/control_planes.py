"""Refuses to take a stack down while HyperShift has a control plane that would go with it, or lose its identities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from identity import resource_types
from identity.access.control_planes import control_planes, identities_in_use, refusal, unreadable
from identity.access.errors import AccessError
from identity.naming import control_plane_namespace
from identity.outputs import StackOutputs, cluster_side
from ops.access.management_cluster import api_server
from ops.guards.ended_credentials import ended_credentials
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import StateResource


def require_no_control_plane(engine: Engine, warn: Callable[[str], None]) -> None:
    """Raise CommandError if `destroy` would harm a control plane, or if that cannot be seen.

    It would delete a namespace with a control plane, or the identities of a hosted cluster that somebody else applied.
    The engine does not run the program then. `warn` is told, before anything else, of a hosted cluster that HyperShift
    has to delete with credentials that have ended.
    """
    resources = engine.resources()
    outputs = engine.outputs()
    applied = [
        each["inputs"]["metadata"]["name"] for each in resources if each["type"] == resource_types.HOSTED_CLUSTER_OBJECT
    ]
    if warning := ended_credentials(engine, outputs, applied):
        warn(warning)
    deleted, served = _deleted_namespaces(resources), _served_namespaces(outputs, applied)
    namespaces = [*deleted, *served]
    if not namespaces:
        return
    try:
        with api_server(engine) as server:
            found = control_planes(server, namespaces)
    except (AccessError, CommandError) as error:
        raise CommandError(
            f"{unreadable(namespaces, error)}. If the management cluster itself is gone, `idstack pulumi "
            f"--stack {engine.stack} -- destroy` does not ask it about identities"
        ) from None
    if warning := ended_credentials(engine, outputs, set(found.values()).difference(applied)):
        warn(warning)
    if losing := {each: found[each] for each in deleted if each in found}:
        raise CommandError(refusal(losing, engine.stack))
    if found:
        raise CommandError(identities_in_use(found))


def _deleted_namespaces(resources: Iterable[StateResource]) -> list[str]:
    """The namespaces in the state, but for those that were handed over."""
    return [
        each["inputs"]["metadata"]["name"]
        for each in resources
        if each["type"] == resource_types.NAMESPACE and not each.get("retainOnDelete")
    ]


def _served_namespaces(outputs: StackOutputs[Any], applied: Collection[str]) -> list[str]:
    """The namespaces of the control planes that use the stack's identities.

    A HostedCluster in the state goes first, with its control plane. Without a management cluster nobody can look.
    """
    if "managementClusterId" not in outputs:
        return []
    return [
        control_plane_namespace(cluster["namespace"], name)
        for name, cluster in (outputs.get("hostedClusters") or {}).items()
        if name not in applied and cluster_side(outputs, cluster) == "hypershift"
    ]
