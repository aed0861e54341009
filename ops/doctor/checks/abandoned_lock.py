"""Whether a run that was killed has left its lock, and the stack incomplete."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.locks import age
from ops.doctor.model.seen import known
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    for lock in known(world.locks):
        if lock.runs is False:
            yield Fault(
                evidence=f"locked for {age(world, lock)} by {lock.owner}, which does not run any more: it was killed",
                fix=world.make("recover"),
            )


CHECK = of_stack(Stage.BACKEND, "abandoned-lock", (Part.LOCKS,), _find)
