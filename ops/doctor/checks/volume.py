"""Whether each pod runs, with the credential at the path that its container uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Stage, of_identity
from ops.doctor.model.lookups import (
    REFUSED_DOCUMENT,
    START_KUBELET,
    last_warning,
    mounting_pods,
    of_cluster_side,
    reports_of,
    youngest_pods,
)
from ops.stack.environment import is_local
from ops.world.expected import ExpectedMount, Identity
from ops.world.seen import NotReadError, Part, SeenControlPlane, SeenPod, StackWorld, Unread, entry, known


def _find_pod_volume(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether each pod of the identity has the volume, at the path that its container uses."""
    pods, is_ours = (
        known(entry(world.control_planes, identity.cluster).pods),
        known(world.state).cluster_side == "stack",
    )
    if not pods and not is_ours:
        raise NotReadError(f"{identity.namespace} has no pod at all: HyperShift has not created the control plane yet")
    fix = of_cluster_side(world, "the pod", world.repair)
    for mount in identity.mounts:
        own = youngest_pods(pods, mount)
        if not own:
            scale = f"`kubectl --namespace {identity.namespace} scale deployment {mount.deployment} --replicas 1`"
            evidence = f"there is no pod of the Deployment {mount.deployment} in {identity.namespace}"
            yield Fault(evidence=evidence, fix=f"{fix}, or {scale}" if is_ours else fix)
        for pod in own:
            yield from (Fault(evidence=f"{pod.name}: {reason}", fix=fix) for reason in _wrong(identity, mount, pod))


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
            mounted_at = ", ".join(paths) or "nowhere"
            yield f"{mount.container} mounts {volumes[0]} at {mounted_at}; it expects the file in {mount.directory}"
        file = mount.path(identity.secret)
        if mount.variable is not None and container.variables.get(mount.variable) != file:
            yield f"{mount.variable} of {mount.container} is {container.variables.get(mount.variable)!r}, not {file!r}"


# The reasons of a container that is about to run.
_PASSING: Final = ("ContainerCreating", "PodInitializing")


def _find_pod_runs(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the pods of the identity run, once the driver has mounted their credential."""
    plane = entry(world.control_planes, identity.cluster)
    mounted = {mount.pod for mount in known(plane.mounts) if mount.is_mounted}
    for pod in mounting_pods(world, identity):
        # On this machine pods end with the kubelet, and nobody withdraws that they are ready.
        if pod.is_ready and is_local(world.stack) and isinstance(plane.reports.get(pod.name), Unread):
            yield Fault(evidence="its pods are ready, but their probes do not answer", fix=START_KUBELET)
        if pod.is_ready or pod.name not in mounted:
            continue
        if reason := _volume_of_another_kind(plane, pod):
            other_mounts = "its other volumes"
            fix = of_cluster_side(world, other_mounts, f"create {other_mounts}: {world.repair}")
        elif pod.waiting and not pod.waiting.startswith(_PASSING):
            reason = pod.waiting
            next_step = of_cluster_side(world, "the pod", "correct image or container")
            fix = f"`kubectl --namespace {identity.namespace} describe pod {pod.name}`, then {next_step}"
        else:
            continue
        yield Fault(evidence=f"{pod.name} does not run: {reason}", fix=fix)


def _volume_of_another_kind(plane: SeenControlPlane, pod: SeenPod) -> str:
    """The kubelet's message about another volume of a waiting pod; empty if there is none."""
    if pod.phase != "Pending" or isinstance(plane.warnings, Unread):
        return ""
    last = last_warning(plane.warnings, pod.name, "FailedMount")
    return "" if any(f'"{volume}"' in last for volume in pod.classes) else last


POD = of_identity(Stage.VOLUME, "pod", (Part.CONTROL_PLANES, Part.REPORTS), _find_pod_runs)


def _find_credential_path(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the consumer's variable or document names an existing file."""
    for mount, pod, report in reports_of(world, identity):
        error, expected = report.sign_in_error, mount.path(identity.secret)
        actual = report.file
        if actual is not None and actual != expected:
            evidence = f"{pod.name} expects its credential at {actual}; it is mounted at {expected}"
        elif error and not report.expires and not error.startswith(REFUSED_DOCUMENT):
            evidence = f"{pod.name}: {' '.join(error.split())}"
        else:
            continue
        where = f"the Secret {mount.document_secret}" if mount.document_secret else f"the Deployment {mount.deployment}"
        yield Fault(evidence=evidence, fix=f"{world.repair} writes {where} in {identity.namespace} again")


CHECKS: Final[tuple[Check, ...]] = (
    of_identity(Stage.VOLUME, "volume", (Part.CONTROL_PLANES,), _find_pod_volume),
    POD,
    of_identity(Stage.VOLUME, "path", (Part.REPORTS, Part.CONTROL_PLANES), _find_credential_path),
)
