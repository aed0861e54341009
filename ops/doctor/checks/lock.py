"""Whether somebody holds the stack's lock, since when, and whether that process still runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import known
from ops.doctor.model.world import World


def _find(world: World, _: WholeStack) -> Iterator[Fault]:
    for lock in known(world.locks):
        if lock.runs:
            state, fix = "which still runs", f"wait until it ends, or interrupt it (Ctrl-C), then {world.make('up')}"
        elif lock.runs is None:
            state = "which this machine cannot see"
            fix = f"wait until it ends; if it is gone for sure, {world.make('recover', '--unlock')}"
        else:
            state, fix = "which does not run any more: it was killed", world.make("recover")
        age = _rounded(world.now - lock.since)
        yield Fault(evidence=f"locked for {age} by {lock.owner}, {state}", fix=fix)


def _rounded(age: timedelta) -> str:
    """In the largest unit of which there are two."""
    seconds = max(int(age.total_seconds()), 0)
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} seconds"


CHECK = of_stack(Stage.BACKEND, "lock", (Part.LOCKS,), _find)
