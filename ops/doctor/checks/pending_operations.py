"""Whether a killed engine left operations half done in the state."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import known
from ops.doctor.model.world import World


def _find(world: World, _: WholeStack) -> Iterator[Fault]:
    if pending := known(world.state).pending:
        yield Fault(evidence=f"half done: {', '.join(pending)}", fix=world.make("recover"))


CHECK = of_stack(Stage.BACKEND, "pending-operations", (Part.STATE,), _find)
