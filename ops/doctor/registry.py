"""Every check, in the order in which a fault explains the ones behind it."""

from __future__ import annotations

from typing import Final

from ops.doctor.checks import (
    access,
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
from ops.world.parts import Part
from ops.world.selection import Selection

CHECKS: Final[tuple[Check, ...]] = (
    *engine.CHECKS,
    *backend.CHECKS,
    *access.CHECKS,
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
    """The checks that say something about what is named: all that explains it, from the vault on."""
    if selection.is_everything:
        return list(CHECKS)
    is_cluster = selection.identity is None and selection.pod is None
    return [
        each
        for each in CHECKS
        if each.stage not in (Stage.BACKEND, Stage.ACCESS) and (is_cluster or Part.CONFIGURATION not in each.needs)
    ]


# What `status`, `graph` and the metrics look at besides their own tables: all that they take is what a Reader may
# read of the backend and of Azure. Whether pods mount, load and sign in is in the tables.
STATUS_CHECKS: Final[tuple[Check, ...]] = (
    backend.ABANDONED_LOCK,
    backend.PENDING_OPERATIONS,
    backend.LAST_RUN,
    *vault.CHECKS,
    sign_in.REGISTRATION,
    proof_call.ROLE,
)
