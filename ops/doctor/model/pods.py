"""The pods that ask the driver for an identity's credential."""

from __future__ import annotations

from ops.world.expected import Identity
from ops.world.seen import entry, known
from ops.world.stack_world import SeenPod, StackWorld


def asking(world: StackWorld, identity: Identity) -> list[SeenPod]:
    """Every pod with a volume of the identity's class, but for those that belong to other identities alone.

    Workloads of the user's own may mount any class. Raises NotReadError.
    """
    own = {each.deployment for each in identity.mounts}
    others = {
        mount.deployment
        for each in known(world.state).identities
        if each.cluster == identity.cluster
        for mount in each.mounts
    } - own
    return [
        pod
        for pod in known(entry(world.control_planes, identity.cluster).pods)
        if identity.secret_provider_class in pod.classes.values() and pod.deployment not in others
    ]
