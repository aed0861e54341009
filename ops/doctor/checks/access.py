"""Whether the stack's deployer has its permissions on the management cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Stage, WholeStack, of_stack
from ops.world.seen import NotReadError, Part, known
from ops.world.stack_world import StackWorld


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    access = known(world.access)
    if access.missing and access.is_read_only:
        raise NotReadError(
            f"{access.who} may only read {access.server}, so that the deployer's permissions are not known; run "
            f"{world.command('doctor', '--stage', 'access')} as the deployer"
        )
    if access.missing:
        yield Fault(evidence=f"{access.who} at {access.server} lacks {'; '.join(access.missing)}", fix=access.hint)


CHECKS: Final[tuple[Check, ...]] = (
    of_stack(
        Stage.ACCESS,
        "permissions",
        (Part.ACCESS, Part.CONFIGURATION),
        _find,
        hides=(Part.CONTROL_PLANES, Part.REPORTS),
    ),
)
