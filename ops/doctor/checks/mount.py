"""Whether the CSI driver has mounted the vault's secret in every pod that asks for it, and follows a renewal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Final

from identity.credentials.schedule import LONGEST_POLL
from identity.credentials.symptom import Family
from identity.credentials.symptoms import find
from identity.naming import parse_arm_id
from identity.secrets_store import poll_interval, rotation_command, rotation_fault
from ops.doctor.model.check import Check, Fault, Stage, WholeStack, of_identity, of_stack
from ops.doctor.model.fixes import of_symptom
from ops.doctor.model.pods import asking
from ops.world.expected import Identity
from ops.world.parts import Part
from ops.world.seen import NotReadError, Unread, entry, known
from ops.world.stack_world import SeenControlPlane, StackWorld


def _find_secret_rotation(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the secrets-store add-on of AKS brings a renewed certificate into the pods, and soon enough."""
    state, add_on = known(world.state), known(world.add_on)
    if state.management_cluster is None or add_on is None:
        return
    fault = rotation_fault({"enabled": add_on.is_enabled, "config": add_on.config})
    if fault is not None:
        cluster = parse_arm_id(state.management_cluster)
        command = rotation_command(cluster.resource_group, cluster.name)
        yield Fault(evidence=f"the secrets-store add-on of {cluster.name}: {fault}", fix=f"`{command}`")


SECRET_ROTATION = of_stack(Stage.MOUNT, "rotation", (Part.ADD_ON, Part.STATE), _find_secret_rotation)


# Beyond the driver's interval, which is a minimum: kubelet asks it about once a minute, and the vault may be slow.
_SLACK: Final = timedelta(minutes=8)
_MOUNT, _ROTATION = "FailedMount", "MountRotationFailed"
_NO_EVENT: Final = "no event says why; events are kept for an hour"


def _find_driver_mount(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the CSI driver has mounted the secret in every pod that asks for it, in the vault's version."""
    seen = entry(world.control_planes, identity.cluster)
    pods = asking(world, identity)
    if not pods:
        raise NotReadError(f"no pod in {identity.namespace} asks the driver for {identity.secret_provider_class}")
    mounts = {
        each.pod: each for each in known(seen.mounts) if each.secret_provider_class == identity.secret_provider_class
    }
    for pod in pods:
        mount = mounts.get(pod.name)
        if mount is None or not mount.is_mounted:
            said = _last_warning(seen, pod.name, _MOUNT)
            yield Fault(
                evidence=f"the driver has mounted nothing in {pod.name}: {said}", fix=_fix(world, identity, said)
            )
            continue
        current = entry(world.secrets, identity.secret)
        version = mount.versions.get(f"secret/{identity.secret}")
        if current is None or version == current.version or world.now - current.created < _polled_within(world):
            continue
        said = _last_warning(seen, pod.name, _ROTATION)
        yield Fault(
            evidence=f"{pod.name} has version {version} mounted, the vault has {current.version} since "
            f"{current.created:%Y-%m-%d %H:%M} UTC: {said}",
            fix=_fix(world, identity, said),
        )


def _polled_within(world: StackWorld) -> timedelta:
    """How old a version may be that a pod has not got yet. Where nobody tells the interval, it may be the longest."""
    add_on, interval = world.add_on, LONGEST_POLL
    if add_on is not None and not isinstance(add_on, Unread) and add_on.is_enabled:
        with suppress(ValueError):
            interval = poll_interval(add_on.config)
    return interval + _SLACK


def _last_warning(seen: SeenControlPlane, pod: str, reason: str) -> str:
    if isinstance(seen.warnings, Unread):
        return f"its events were not read ({seen.warnings.why})"
    found = [each for each in seen.warnings if (each.pod, each.reason) == (pod, reason)]
    return " ".join(max(found, key=lambda each: each.last).message.split()) if found else _NO_EVENT


def _fix(world: StackWorld, identity: Identity, said: str) -> str:
    symptom = find(said, Family.VAULT, Family.MOUNT)
    if symptom is None:
        return (
            "look at the driver's own log: `kubectl logs --namespace kube-system --container secrets-store "
            "--selector app=secrets-store-csi-driver`"
        )
    return of_symptom(world, identity, symptom)


DRIVER_MOUNT = of_identity(Stage.MOUNT, "mount", (Part.CONTROL_PLANES, Part.SECRETS, Part.ADD_ON), _find_driver_mount)

CHECKS: Final[tuple[Check, ...]] = (
    SECRET_ROTATION,
    DRIVER_MOUNT,
)
