"""Whether each pod runs with the credential where its container looks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Stage, of_identity
from ops.doctor.model.fixes import of_cluster_side
from ops.doctor.model.pods import asking
from ops.doctor.model.reports import REFUSED_DOCUMENT, reports_of
from ops.world.expected import ExpectedMount, Identity
from ops.world.parts import Part
from ops.world.seen import NotReadError, Unread, entry, known
from ops.world.stack_world import SeenControlPlane, SeenPod, StackWorld


def _find_pod_volume(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether each pod of the identity has the volume, at the path where its container looks for the file."""
    pods, is_ours = (
        known(entry(world.control_planes, identity.cluster).pods),
        known(world.state).cluster_side == "stack",
    )
    if not pods and not is_ours:
        raise NotReadError(f"{identity.namespace} has no pod at all: HyperShift has not made the control plane yet")
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


POD_VOLUME = of_identity(Stage.VOLUME, "volume", (Part.CONTROL_PLANES,), _find_pod_volume)


# A container that is about to run.
_PASSING: Final = ("ContainerCreating", "PodInitializing")


def _find_pod_runs(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the pods of the identity run, once the driver has mounted their credential."""
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


POD_RUNS = of_identity(Stage.VOLUME, "pod", (Part.CONTROL_PLANES,), _find_pod_runs)


def _find_credential_path(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the consumer's variable or document leads to a file that is there."""
    for mount, pod, report in reports_of(world, identity):
        error, wanted = report.sign_in_error, mount.path(identity.secret)
        found = report.file
        if found is not None and found != wanted:
            evidence = f"{pod.name} looks for its credential at {found}; it is mounted at {wanted}"
        elif error and not report.expires and not error.startswith(REFUSED_DOCUMENT):
            evidence = f"{pod.name}: {' '.join(error.split())}"
        else:
            continue
        where = f"the Secret {mount.document_secret}" if mount.document_secret else f"the Deployment {mount.deployment}"
        yield Fault(evidence=evidence, fix=f"{world.repair} writes {where} in {identity.namespace} again")


CREDENTIAL_PATH = of_identity(Stage.VOLUME, "path", (Part.REPORTS, Part.CONTROL_PLANES), _find_credential_path)

CHECKS: Final[tuple[Check, ...]] = (
    POD_VOLUME,
    POD_RUNS,
    CREDENTIAL_PATH,
)
