"""Whether the CSI driver has mounted the vault's secret in every pod with its volume, and updates it."""

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
from ops.doctor.model.lookups import START_KUBELET, last_warning, mounting_pods, of_symptom
from ops.stack.environment import is_local
from ops.world.expected import Identity
from ops.world.seen import NotReadError, Part, SeenControlPlane, StackWorld, Unread, entry, known


def _find_secret_rotation(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the secrets-store add-on of AKS updates a renewed certificate in the pods, and soon enough."""
    state, add_on = known(world.state), known(world.add_on)
    if state.management_cluster is None or add_on is None:
        return
    fault = rotation_fault({"enabled": add_on.is_enabled, "config": add_on.config})
    if fault is not None:
        cluster = parse_arm_id(state.management_cluster)
        command = rotation_command(cluster.resource_group, cluster.name)
        yield Fault(evidence=f"the secrets-store add-on of {cluster.name}: {fault}", fix=f"`{command}`")


# Added to the driver's interval, which is a minimum: kubelet calls it about once a minute, and the vault may be slow.
_SLACK: Final = timedelta(minutes=8)
_MOUNT, _ROTATION = "FailedMount", "MountRotationFailed"
_NO_EVENT: Final = "no event says why; events are kept for an hour"


def _find_driver_mount(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the CSI driver has mounted the vault's version of the secret in every pod with its volume."""
    plane = entry(world.control_planes, identity.cluster)
    pods = mounting_pods(world, identity)
    if not pods:
        raise NotReadError(f"no pod in {identity.namespace} has a volume of {identity.secret_provider_class}")
    mounts = {
        mounted.pod: mounted
        for mounted in known(plane.mounts)
        if mounted.secret_provider_class == identity.secret_provider_class
    }
    for pod in pods:
        mount = mounts.get(pod.name)
        if mount is None or not mount.is_mounted:
            reason = _last_warning(plane, pod.name, _MOUNT)
            yield Fault(
                evidence=f"the driver has mounted nothing in {pod.name}: {reason}", fix=_fix(world, identity, reason)
            )
            continue
        current = entry(world.secrets, identity.secret)
        version = mount.versions.get(f"secret/{identity.secret}")
        if current is None or version == current.version or world.now - current.created < _polled_within(world):
            continue
        reason = _last_warning(plane, pod.name, _ROTATION)
        yield Fault(
            evidence=f"{pod.name} has version {version} mounted, the vault has {current.version} since "
            f"{current.created:%Y-%m-%d %H:%M} UTC: {reason}",
            fix=_fix(world, identity, reason),
        )


def _polled_within(world: StackWorld) -> timedelta:
    """The time within which pods get a new version; with the longest interval if the driver's is not known."""
    add_on, interval = world.add_on, LONGEST_POLL
    if add_on is not None and not isinstance(add_on, Unread) and add_on.is_enabled:
        with suppress(ValueError):
            interval = poll_interval(add_on.config)
    return interval + _SLACK


def _last_warning(plane: SeenControlPlane, pod: str, reason: str) -> str:
    if isinstance(plane.warnings, Unread):
        return f"its events were not read ({plane.warnings.why})"
    return last_warning(plane.warnings, pod, reason) or _NO_EVENT


def _fix(world: StackWorld, identity: Identity, reason: str) -> str:
    symptom = find(reason, Family.VAULT, Family.MOUNT)
    if symptom is None and is_local(world.stack):
        return START_KUBELET
    if symptom is None:
        return (
            "read the driver's log: `kubectl logs --namespace kube-system --container secrets-store "
            "--selector app=secrets-store-csi-driver`"
        )
    return of_symptom(world, identity, symptom)


CHECKS: Final[tuple[Check, ...]] = (
    of_stack(Stage.MOUNT, "secret-rotation", (Part.ADD_ON, Part.STATE), _find_secret_rotation),
    of_identity(Stage.MOUNT, "mount", (Part.CONTROL_PLANES, Part.SECRETS, Part.ADD_ON), _find_driver_mount),
)
