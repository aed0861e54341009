"""Whether each pod of the identity has the volume, at the path where its container looks for the file."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, of_identity
from ops.doctor.model.expected import ExpectedMount, Identity
from ops.doctor.model.fixes import of_cluster_side
from ops.doctor.model.seen import NotRead, entry, known
from ops.doctor.model.world import SeenPod, StackWorld


def _find(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    pods, is_ours = (
        known(entry(world.control_planes, identity.cluster).pods),
        known(world.state).cluster_side == "stack",
    )
    if not pods and not is_ours:
        raise NotRead(f"{identity.namespace} has no pod at all: HyperShift has not made the control plane yet")
    fix = of_cluster_side(world, "the pod", world.repair)
    for mount in identity.mounts:
        own = [each for each in pods if each.deployment == mount.deployment]
        if not own:
            scale = f"`kubectl --namespace {identity.namespace} scale deployment {mount.deployment} --replicas 1`"
            evidence = f"there is no pod of the Deployment {mount.deployment} in {identity.namespace}"
            yield Fault(evidence=evidence, fix=f"{fix}, or {scale}" if is_ours else fix)
        # During a rollout there are two; the youngest stays.
        for pod in sorted(own, key=lambda each: each.created)[-1:]:
            yield from (Fault(evidence=f"{pod.name}: {each}", fix=fix) for each in _wrong(identity, mount, pod))


def _wrong(identity: Identity, mount: ExpectedMount, pod: SeenPod) -> Iterator[str]:
    volumes = [volume for volume, name in pod.classes.items() if name == identity.secret_provider_class]
    container = pod.containers.get(mount.container)
    if not volumes:
        names = f"; it has {', '.join(pod.classes.values())}" if pod.classes else ""
        yield f"no volume of it names the class {identity.secret_provider_class}{names}"
    elif container is None:
        yield f"it has no container {mount.container}"
    else:
        paths = [path for path, volume in container.mounts.items() if volume in volumes]
        if mount.directory not in paths:
            found = ", ".join(paths) or "nowhere"
            yield f"{mount.container} mounts {volumes[0]} at {found}; it looks for the file in {mount.directory}"
        file = mount.path(identity.secret)
        if mount.variable is not None and container.variables.get(mount.variable) != file:
            yield f"{mount.variable} of {mount.container} is {container.variables.get(mount.variable)!r}, not {file!r}"


CHECK = of_identity(Stage.VOLUME, "volume", (Part.CONTROL_PLANES,), _find)
