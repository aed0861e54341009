"""Whether what the configuration names was brought up."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import known
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    state, configuration = known(world.state), known(world.configuration)
    if not state.is_up:
        yield Fault(evidence="the state has no outputs: no `up` of the stack has ended yet", fix=world.make("up"))
        return
    made = {each.cluster: {one.identity for one in (*each.identities, *each.guests)} for each in state.clusters}
    for cluster, fields in configuration.identities.items():
        if missing := [each for each in fields if each not in made.get(cluster, ())]:
            what = ", ".join(missing) if cluster in made else "none of its identities is there"
            yield Fault(evidence=f"configured and not brought up yet: {what}", fix=world.make("up"), cluster=cluster)


CHECK = of_stack(Stage.CONFIGURATION, "brought-up", (Part.CONFIGURATION, Part.STATE), _find)
