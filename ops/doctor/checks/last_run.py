"""Whether the last run that changed the stack has completed."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import known
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    run = known(world.last_run)
    if run is not None and run.has_failed:
        command = "up" if run.kind == "update" else run.kind
        yield Fault(
            evidence=f"the last `pulumi {command}`, begun at {run.started}, has failed: the stack may be incomplete",
            fix=world.make("down" if run.kind == "destroy" else "up"),
        )


CHECK = of_stack(Stage.BACKEND, "last-run", (Part.HISTORY,), _find)
