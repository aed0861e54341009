"""Every check, in the order in which a fault explains later ones."""

from __future__ import annotations

from typing import Final

from ops.doctor.checks import (
    access,
    applications,
    backend,
    configuration,
    document,
    engine,
    federation,
    hosted_clusters,
    mount,
    proof_call,
    secret_provider_class,
    sign_in,
    vault,
    volume,
)
from ops.doctor.model.check import Check, Stage
from ops.world.seen import Part
from ops.world.selection import Selection

CHECKS: Final[tuple[Check, ...]] = (
    *engine.CHECKS,
    *backend.CHECKS,
    *access.CHECKS,
    *applications.CHECKS,
    *configuration.CHECKS,
    *vault.CHECKS,
    *secret_provider_class.CHECKS,
    *mount.CHECKS,
    *volume.CHECKS,
    *document.CHECKS,
    *federation.CHECKS,
    *sign_in.CHECKS,
    *proof_call.CHECKS,
    *hosted_clusters.CHECKS,
)


def chosen(selection: Selection) -> list[Check]:
    """The checks that can explain a fault of the selection, from the vault on."""
    if selection.is_everything:
        return list(CHECKS)
    is_cluster = selection.identity is None and selection.pod is None
    return [check for check in CHECKS if check.stage.is_in_the_chain and (is_cluster or not _is_of_the_file(check))]


def _is_of_the_file(check: Check) -> bool:
    """Whether it is about the stack's own file; checks of other stages read it to tell what prevents a sign-in."""
    return check.stage is Stage.CONFIGURATION and Part.CONFIGURATION in check.needs


# The checks of `status`, `graph` and the metrics, which need the backend, the role Reader in Azure, the objects of the
# management cluster and, on this machine, the probes' reports. Their own tables have the sign-ins.
STATUS_CHECKS: Final[tuple[Check, ...]] = (
    backend.ABANDONED_LOCK,
    backend.PENDING_OPERATIONS,
    backend.LAST_RUN,
    access.SIGN_IN,
    *vault.CHECKS,
    *secret_provider_class.CHECKS,
    *mount.CHECKS,
    volume.POD,
    sign_in.REGISTRATION,
    proof_call.ROLE,
)
