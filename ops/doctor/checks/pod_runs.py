"""Whether the pods of the identity run, once the driver has mounted their credential."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Fault, Part, Stage, of_identity
from ops.doctor.model.expected import Identity
from ops.doctor.model.fixes import of_cluster_side
from ops.doctor.model.pods import asking
from ops.doctor.model.seen import Unread, entry, known
from ops.doctor.model.world import SeenControlPlane, SeenPod, StackWorld

# A container that is about to run.
_PASSING: Final = ("ContainerCreating", "PodInitializing")


def _find(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    seen = entry(world.control_planes, identity.cluster)
    mounted = {each.pod for each in known(seen.mounts) if each.is_mounted}
    for pod in asking(world, identity):
        if pod.is_ready or pod.name not in mounted:
            continue
        if reason := _volume_of_another_kind(seen, pod):
            what = "what it mounts besides its credential"
            fix = of_cluster_side(world, what, f"make {what}: {world.repair}")
        elif pod.waiting and not pod.waiting.startswith(_PASSING):
            reason = pod.waiting
            then = of_cluster_side(world, "the pod", "correct image or container")
            fix = f"`kubectl --namespace {identity.namespace} describe pod {pod.name}`, then {then}"
        else:
            continue
        yield Fault(evidence=f"{pod.name} does not run: {reason}", fix=fix)


def _volume_of_another_kind(seen: SeenControlPlane, pod: SeenPod) -> str:
    """What the kubelet says of a volume that no driver mounts; empty if it says nothing of a pod that waits."""
    if pod.phase != "Pending" or isinstance(seen.warnings, Unread):
        return ""
    found = [each for each in seen.warnings if (each.pod, each.reason) == (pod.name, "FailedMount")]
    last = " ".join(max(found, key=lambda each: each.last).message.split()) if found else ""
    return "" if any(f'"{volume}"' in last for volume in pod.classes) else last


CHECK = of_identity(Stage.VOLUME, "pod", (Part.CONTROL_PLANES,), _find)
