"""Whether a run holds the stack's lock, and since when."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.locks import age
from ops.doctor.model.seen import known
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    for lock in known(world.locks):
        if lock.runs:
            state, fix = "which still runs", f"wait until it ends, or interrupt it (Ctrl-C), then {world.make('up')}"
        elif lock.runs is None:
            state = "which this machine cannot see"
            fix = f"wait until it ends; if it is gone for sure, {world.make('recover', '--unlock')}"
        else:
            continue
        yield Fault(evidence=f"locked for {age(world, lock)} by {lock.owner}, {state}", fix=fix)


CHECK = of_stack(Stage.BACKEND, "lock", (Part.LOCKS,), _find)
