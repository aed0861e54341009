"""Warns of credentials that no longer sign in, before a hosted cluster is deleted with them.

HyperShift deletes machines, volumes and load balancers with the control plane's identities. If it cannot delete a
machine for ten minutes, it removes the finalizer (openshift/hypershift pull request 8296, `DeleteOrphanedMachines` in
`internal/platform/azure/azure.go`): the HostedCluster is deleted, and the machine stays in Azure.
"""

from __future__ import annotations

from collections.abc import Collection

from ops.doctor.checks.sign_in import REGISTRATION
from ops.doctor.checks.vault import SECRET
from ops.doctor.diagnosis import CheckStatus, diagnose
from ops.stack.engine import Engine
from ops.world.look import look

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
        "delete for ten minutes: the HostedCluster is deleted, and the machine stays in Azure. `idstack sweep --stack "
        f"{engine.stack}` lists such machines."
    )
    if broken := [result for result in results if result.status is CheckStatus.BROKEN]:
        ended = "; ".join(f"{result.identity} of {result.cluster} ({result.evidence})" for result in broken)
        return (
            f"HyperShift cannot sign in with all credentials: {ended}. {consequence} `idstack doctor --stack "
            f"{engine.stack}` has the fix for each: apply it first"
        )
    if unread := dict.fromkeys(result.evidence for result in results if result.status is CheckStatus.NOT_CHECKED):
        return f"the credentials of {', '.join(clusters)} cannot be checked ({'; '.join(unread)}). {consequence}"
    return None
