"""Whether the secrets-store add-on of AKS brings a renewed certificate into the pods, and soon enough."""

from __future__ import annotations

from collections.abc import Iterator

from identity.naming import parse_arm_id
from identity.secrets_store import rotation_command, rotation_fault
from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import known
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    state, add_on = known(world.state), known(world.add_on)
    if state.management_cluster is None or add_on is None:
        return
    fault = rotation_fault({"enabled": add_on.is_enabled, "config": add_on.config})
    if fault is not None:
        cluster = parse_arm_id(state.management_cluster)
        command = rotation_command(cluster.resource_group, cluster.name)
        yield Fault(evidence=f"the secrets-store add-on of {cluster.name}: {fault}", fix=f"`{command}`")


CHECK = of_stack(Stage.MOUNT, "rotation", (Part.ADD_ON, Part.STATE), _find)
