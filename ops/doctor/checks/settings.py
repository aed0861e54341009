"""Whether the settings accept the stack's configuration."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import known
from ops.doctor.model.world import World


def _find(world: World, _: WholeStack) -> Iterator[Fault]:
    for each in known(world.configuration).refused:
        evidence = f"{each.path}: found {each.found}; accepted: {each.accepted}"
        yield Fault(evidence=evidence, fix=each.fix, cluster=each.cluster)


CHECK = of_stack(Stage.CONFIGURATION, "settings", (Part.CONFIGURATION,), _find)
