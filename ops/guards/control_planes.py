"""Refuses to destroy a stack while HyperShift has a control plane that would be deleted, or lose its identities."""

from __future__ import annotations

from collections.abc import Callable, Collection

from identity import resource_types
from identity.aks.control_planes import control_planes, identities_in_use, refusal, unreadable
from identity.azure.errors import AccessError
from identity.naming import control_plane_namespace
from identity.outputs import cluster_side
from ops.access.management_cluster import api_server
from ops.doctor.checks.sign_in import REGISTRATION
from ops.doctor.checks.vault import SECRET
from ops.doctor.diagnosis import CheckStatus, diagnose
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.world.look import look


def require_no_control_plane(engine: Engine, warn: Callable[[str], None]) -> None:
    """Raise CommandError if `destroy` would harm a control plane, or if that is unknown.

    It would delete a namespace with a control plane, or the identities of a hosted cluster that another tool applied.
    `destroy` does not run the program, which has its own check. `warn` gets a warning about hosted clusters that
    HyperShift has to delete with credentials that no longer sign in.
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
    if warning := ended_credentials(engine, sorted({*applied, *existing.values()})):
        warn(warning)
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


_CHECKS = (SECRET, REGISTRATION)


def ended_credentials(engine: Engine, clusters: Collection[str]) -> str | None:
    """The warning for the deletion of these hosted clusters; None if all their credentials sign in.

    A failed read is a warning, too.
    """
    if not clusters:
        return None
    world = look(engine, {part for check in _CHECKS for part in check.needs})
    results = [result for result in diagnose(world, _CHECKS) if result.cluster in clusters]
    consequence = (
        "HyperShift deletes machines, volumes and load balancers with them. It gives up a machine that it cannot "
        "delete for ten minutes: the HostedCluster is deleted, and the machine stays in Azure. `.venv/bin/idstack "
        f"sweep --stack {engine.stack}` lists such machines."
    )
    if broken := [result for result in results if result.status is CheckStatus.BROKEN]:
        ended = "; ".join(f"{result.identity} of {result.cluster} ({result.evidence})" for result in broken)
        return (
            f"HyperShift cannot sign in with all credentials: {ended}. {consequence} `.venv/bin/idstack doctor --stack "
            f"{engine.stack}` has the fix for each: apply it first"
        )
    if unread := dict.fromkeys(result.evidence for result in results if result.status is CheckStatus.NOT_CHECKED):
        return f"the credentials of {', '.join(clusters)} cannot be checked ({'; '.join(unread)}). {consequence}"
    return None
