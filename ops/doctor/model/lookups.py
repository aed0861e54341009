"""Look-ups in the world that several checks use, and fixes that depend on the creator of an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from identity.credentials.symptom import GENERIC_PLACEHOLDERS, Symptom
from ops.world.expected import ExpectedMount, Identity, StateRole
from ops.world.probes import SeenReport
from ops.world.seen import NotReadError, SeenPod, SeenWarning, StackWorld, entry, known

# The begin of `identity.credentials.document.InvalidCredentialError`: the file exists, and its content is refused.
REFUSED_DOCUMENT: Final = "credential document:"
START_KUBELET: Final = "`.venv/bin/idstack local start`, if the kubelet has ended; its log is .localcloud/kubelet.log"


def mounting_pods(world: StackWorld, identity: Identity) -> list[SeenPod]:
    """Every pod with a volume of the identity's class, without those of other identities alone.

    A user's own workloads may mount any class. Raises NotReadError.
    """
    own = {mount.deployment for mount in identity.mounts}
    others = {
        mount.deployment
        for other in known(world.state).identities
        if other.cluster == identity.cluster
        for mount in other.mounts
    } - own
    return [
        pod
        for pod in known(entry(world.control_planes, identity.cluster).pods)
        if identity.secret_provider_class in pod.classes.values() and pod.deployment not in others
    ]


def youngest_pods(pods: Iterable[SeenPod], mount: ExpectedMount) -> list[SeenPod]:
    """The pod of a mount's Deployment, if there is one: during a rollout the youngest of two."""
    own = [pod for pod in pods if pod.deployment == mount.deployment]
    return sorted(own, key=lambda pod: pod.created)[-1:]


def reports_of(world: StackWorld, identity: Identity) -> Iterator[tuple[ExpectedMount, SeenPod, SeenReport]]:
    """The report of each probe that is not ready, and of each ready one whose report was read.

    A ready probe has signed in and made its call, so that its report may be unread. Raises NotReadError for any other
    probe without a report, and for HyperShift's own pods, which have none.
    """
    if known(world.state).cluster_side == "hypershift":
        raise NotReadError("the pods are HyperShift's, which report no sign-in: see their logs and the conditions")
    plane = entry(world.control_planes, identity.cluster)
    for mount in identity.mounts:
        for pod in youngest_pods(known(plane.pods), mount):
            if not pod.is_ready or isinstance(plane.reports.get(pod.name), SeenReport):
                yield mount, pod, entry(plane.reports, pod.name)


def last_warning(warnings: Iterable[SeenWarning], pod: str, reason: str) -> str:
    """The newest message of this reason about a pod, in one line; empty for none."""
    own = [warning for warning in warnings if (warning.pod, warning.reason) == (pod, reason)]
    return " ".join(max(own, key=lambda warning: warning.last).message.split()) if own else ""


def role_fault(world: StackWorld, role: StateRole) -> str:
    """What differs in ARM from an assignment of the state; empty if nothing does. Raises NotReadError."""
    assignment = entry(world.roles, role.id)
    name = f"the role assignment {role.resource} ({role.name}) at {role.scope}"
    if assignment is None:
        return f"{name} does not exist"
    if assignment.principal_id != role.principal_id:
        return f"{name} is of the principal {assignment.principal_id}; the stack gave it to {role.principal_id}"
    if assignment.role != role.role:
        return f"{name} has the role {assignment.role}; the stack gave it {role.role}"
    return ""


def renewal(world: StackWorld, identity: Identity) -> str:
    """The command, if the stack issues the identity's certificates; otherwise the steps with the other tool."""
    if identity.generation is None:
        return f"issue the credential again with the tool that issued it, then {world.command('up')}"
    return world.command("rotate", "--identity", f"{identity.cluster}/{identity.identity}", "--force")


def of_cluster_side(world: StackWorld, name: str, ours: str) -> str:
    """The fix of an object in the control plane's namespace: `ours` if the stack creates it."""
    if known(world.state).cluster_side == "stack":
        return ours
    return f"check the log of HyperShift's operators: HyperShift creates {name}"


def of_symptom(world: StackWorld, identity: Identity, symptom: Symptom) -> str:
    """The fix of a symptom, for this identity. Raises NotReadError."""
    state = known(world.state)
    return symptom.fix.format(
        up=world.command("up"),
        repair=world.repair,
        objects=of_cluster_side(world, "it", world.repair),
        recover=world.command("recover"),
        renewal=renewal(world, identity),
        rotate=world.command("rotate", "--identity", f"{identity.cluster}/{identity.identity}").strip("`"),
        attach=f"`{state.attach_command}`" if state.attach_command else GENERIC_PLACEHOLDERS["attach"],
        client=identity.client_id,
        secret=f"--vault-name {state.vault_name} --name {identity.secret}",
    )
