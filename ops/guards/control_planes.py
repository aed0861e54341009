"""Refuses to destroy a stack while HyperShift has a control plane that would be deleted, or lose its identities."""

from __future__ import annotations

from collections.abc import Callable, Collection

from identity import resource_types
from identity.aks.control_planes import control_planes, identities_in_use, refusal, unreadable
from identity.azure.errors import AccessError
from identity.naming import control_plane_namespace
from identity.outputs import cluster_side
from ops.access.clients import api_server
from ops.stack.engine import Engine
from ops.stack.errors import CommandError


def require_no_control_plane(engine: Engine, warn: Callable[[Collection[str]], None]) -> None:
    """Raise CommandError if `destroy` would harm a control plane, or if that is unknown.

    It would delete a namespace with a control plane, or the identities of a hosted cluster that another tool applied.
    `destroy` does not run the program, which has its own check. `warn` gets the hosted clusters that HyperShift has to
    delete, to warn of credentials that no longer sign in.
    """
    resources = engine.resources()
    outputs = engine.outputs()
    applied = [
        resource["inputs"]["metadata"]["name"]
        for resource in resources
        if resource["type"] == resource_types.HOSTED_CLUSTER_OBJECT
    ]
    # HyperShift owns a retained namespace now.
    deleted = [
        resource["inputs"]["metadata"]["name"]
        for resource in resources
        if resource["type"] == resource_types.NAMESPACE and not resource.get("retainOnDelete")
    ]
    # `destroy` deletes a HostedCluster in the state before the identities, with its control plane.
    served = [
        control_plane_namespace(cluster["namespace"], name)
        for name, cluster in (outputs.get("hostedClusters") or {}).items()
        if name not in applied and cluster_side(outputs, cluster) == "hypershift" and "managementClusterId" in outputs
    ]
    existing = _existing(engine, [*deleted, *served])
    warn(sorted({*applied, *existing.values()}))
    if losing := {namespace: existing[namespace] for namespace in deleted if namespace in existing}:
        raise CommandError(refusal(losing, engine.stack))
    if existing:
        raise CommandError(identities_in_use(existing))


def _existing(engine: Engine, namespaces: Collection[str]) -> dict[str, str]:
    """The hosted clusters with a control plane, by its namespace."""
    if not namespaces:
        return {}
    try:
        with api_server(engine) as server:
            return control_planes(server, namespaces)
    except (AccessError, CommandError) as error:
        raise CommandError(
            f"{unreadable(namespaces, error)}. If the management cluster itself does not exist any more, "
            f"`.venv/bin/idstack pulumi --stack {engine.stack} -- destroy` runs without the check of identities"
        ) from None
