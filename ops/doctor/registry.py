"""Every check, by the order of the stages, in which a fault explains later ones."""

from __future__ import annotations

from typing import Final

from ops.doctor.checks import configuration, federation, pods, sign_in, stack, vault
from ops.doctor.model.check import Check, Stage
from ops.world.seen import Part
from ops.world.selection import Selection

_IN_ORDER: Final = list(Stage)
_MODULES: Final = (stack, configuration, vault, pods, federation, sign_in)
CHECKS: Final[tuple[Check, ...]] = tuple(
    sorted(
        (check for module in _MODULES for check in vars(module).values() if isinstance(check, Check)),
        key=lambda check: _IN_ORDER.index(check.stage),
    )
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
    stack.abandoned_lock,
    stack.pending_operations,
    stack.last_run,
    stack.azure,
    *(check for check in CHECKS if check.stage in (Stage.VAULT, Stage.CLASS, Stage.MOUNT)),
    pods.pod,
    sign_in.registration,
    sign_in.role,
)
