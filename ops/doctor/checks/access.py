"""Whether the stack's deployer signs in to Azure, and has its permissions on the management cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from identity.credentials.symptom import az_login
from ops.doctor.model.check import Check, Fault, Stage, WholeStack, of_stack
from ops.stack.environment import is_local
from ops.world.reader import AZURE, CLUSTER
from ops.world.seen import NotReadError, Part, StackWorld, known


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    access = known(world.access)
    if access.missing and access.is_read_only:
        raise NotReadError(
            f"{access.who} may only read {access.server}, so that the deployer's permissions are not known; run "
            f"{world.command('doctor', '--stage', 'access')} as the deployer"
        )
    if access.missing:
        yield Fault(evidence=f"{access.who} at {access.server} lacks {'; '.join(access.missing)}", fix=access.hint)


def _find_sign_in(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the deployer can sign in to Azure now."""
    if (refusal := known(world.sign_in)) is not None:
        fix = f"{world.command('up')} starts the local cloud again" if is_local(world.stack) else az_login(refusal)
        yield Fault(evidence=refusal, fix=fix)


SIGN_IN = of_stack(Stage.ACCESS, "azure", (Part.SIGN_IN,), _find_sign_in, hides=CLUSTER | AZURE)

CHECKS: Final[tuple[Check, ...]] = (
    SIGN_IN,
    of_stack(
        Stage.ACCESS,
        "permissions",
        (Part.ACCESS, Part.CONFIGURATION),
        _find,
        hides=(Part.CONTROL_PLANES, Part.REPORTS),
    ),
)
