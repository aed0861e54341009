"""Worlds for the checks: the recorded look at a healthy stack, and what each kind of fault does to it.

`healthy.json` is what the readers saw of the small stack of `tests/engine` (`tests/engine/test_doctor.py` records it
again with UPDATE_GOLDEN=1). A helper here changes all that a fault would change, also behind its own stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from identity.azure.records import RoleAssignmentRecord, SecretMetadata
from identity.catalogue import CONTROL_PLANE
from ops.world.expected import ExpectedIssuer, FederatedIdentity, Identity, StackState
from ops.world.seen import (
    HostedClusterCondition,
    ProbeStep,
    SeenContainer,
    SeenControlPlane,
    SeenHostedCluster,
    SeenIssuer,
    SeenManagedIdentity,
    SeenPod,
    SeenReport,
    SeenWarning,
    StackWorld,
    Unread,
    known,
)
from tests.unit.ops import answers

RECORDED = Path(__file__).parent / "healthy.json"
CLUSTER = "hc1"
GUEST = "diskMSIClientID"  # of the guest cluster, with three service accounts
Change = Callable[[StackWorld], StackWorld]


@cache
def healthy() -> StackWorld:
    """The recorded stack, a day later: everything is sound."""
    world = TypeAdapter(StackWorld).validate_json(RECORDED.read_bytes())
    return replace(world, now=world.now + timedelta(days=1))


def state(world: StackWorld) -> StackState:
    return known(world.state)


def with_token_probe(world: StackWorld, error: str | None = None) -> StackWorld:
    """`GUEST` has a probe, as in a self-managed cluster; `error` is Entra ID's refusal of its token."""
    [cluster] = state(world).clusters
    probed = {guest.identity: guest for guest in cluster.guests}
    probed[GUEST] = replace(probed[GUEST], probes=("probe-token",))
    pod = replace(known(plane(world).pods)[0], name="probe-token-5d4f8-x2x7k", is_ready=error is None, classes={})
    step = ProbeStep(ok=error is None, error=error)
    loaded: dict[str, Any] = dict.fromkeys(("file", "client_id", "thumbprint", "expires"))
    report = SeenReport(**loaded, is_ready=error is None, sign_in=step, proof=replace(step, error=None))
    world = with_state(world, clusters=(replace(cluster, guests=tuple(probed.values())),))
    seen = plane(world)
    return with_plane(world, pods=(*known(seen.pods), pod), reports={**seen.reports, pod.name: report})


def identity(world: StackWorld, field: str) -> Identity:
    [found] = [expected for expected in state(world).identities if expected.identity == field]
    return found


def with_state(world: StackWorld, **changes: Any) -> StackWorld:
    return replace(world, state=replace(state(world), **changes))


def plane(world: StackWorld) -> SeenControlPlane:
    return known(world.control_planes[CLUSTER])


def with_plane(world: StackWorld, **changes: Any) -> StackWorld:
    return replace(world, control_planes={CLUSTER: replace(plane(world), **changes)})


def with_identity(world: StackWorld, field: str, **changes: Any) -> StackWorld:
    """What the stack has made of an identity is another."""
    old = identity(world, field)
    [cluster] = state(world).clusters
    found = tuple(replace(expected, **changes) if expected == old else expected for expected in cluster.identities)
    return with_state(world, clusters=(replace(cluster, identities=found),))


def guest(world: StackWorld, field: str) -> FederatedIdentity:
    [found] = [federated for federated in state(world).guests if federated.identity == field]
    return found


def self_issued(world: StackWorld, /, **changes: Any) -> StackWorld:
    """The same stack, which publishes the issuer's documents itself; `changes` are what anybody sees of them."""
    address, keys = guest(world, GUEST).credentials[0].issuer, ("kid-1", "kid-2")
    issuer = ExpectedIssuer(address=address, keys=keys, is_ours=True)
    [cluster] = state(world).clusters
    guests = tuple(replace(federated, issuer=issuer) for federated in cluster.guests)
    seen = replace(SeenIssuer(keys=keys), **changes)
    return replace(with_state(world, clusters=(replace(cluster, guests=guests),)), issuers={address: seen})


def with_managed_identity(world: StackWorld, field: str, **changes: Any) -> StackWorld:
    """ARM shows another managed identity."""
    resource_id = guest(world, field).resource_id
    found = known(world.managed_identities[resource_id])
    assert isinstance(found, SeenManagedIdentity)
    return replace(world, managed_identities={**world.managed_identities, resource_id: replace(found, **changes)})


def pods_of(world: StackWorld, field: str) -> list[SeenPod]:
    """The pods of an identity, one for each of its mounts, in their order."""
    found = {pod.deployment: pod for pod in known(plane(world).pods)}
    return [found[mount.deployment] for mount in identity(world, field).mounts if mount.deployment in found]


def with_pods(world: StackWorld, field: str, change: Callable[[SeenPod], SeenPod | None]) -> StackWorld:
    """Change each pod of an identity, or take it away."""
    own = {pod.name for pod in pods_of(world, field)}
    changed = [change(pod) if pod.name in own else pod for pod in known(plane(world).pods)]
    return with_plane(world, pods=tuple(pod for pod in changed if pod is not None))


def with_container(world: StackWorld, field: str, change: Callable[[SeenContainer], SeenContainer]) -> StackWorld:
    def changed(pod: SeenPod) -> SeenPod:
        return replace(pod, containers={name: change(container) for name, container in pod.containers.items()})

    return with_pods(world, field, changed)


def with_reports(world: StackWorld, field: str, **changes: Any) -> StackWorld:
    """The probes of an identity report this, and are not ready."""
    reports = dict(plane(world).reports)
    for pod in pods_of(world, field):
        report = known(reports[pod.name])
        reports[pod.name] = replace(report, **changes)
    return with_pods(with_plane(world, reports=reports), field, lambda pod: replace(pod, is_ready=False))


def role(principal: str, definition: str) -> RoleAssignmentRecord:
    """A role assignment as ARM shows it."""
    return RoleAssignmentRecord.of(answers.role_assignment("/a-scope/a-name", principal, definition))


def with_secret(world: StackWorld, field: str, **changes: Any) -> StackWorld:
    name = identity(world, field).secret
    secret = known(world.secrets[name])
    assert isinstance(secret, SecretMetadata)
    return replace(world, secrets={**world.secrets, name: replace(secret, **changes)})


def with_class(world: StackWorld, field: str, **parameters: str) -> StackWorld:
    """The SecretProviderClass of an identity has other parameters; the pods keep what was mounted before."""
    name, classes = identity(world, field).secret_provider_class, known(plane(world).classes)
    changed = {**classes[name], "parameters": {**classes[name]["parameters"], **parameters}}
    return with_plane(world, classes={**classes, name: changed})


def warned(world: StackWorld, field: str, reason: str, message: str) -> StackWorld:
    found = tuple(
        SeenWarning(pod=pod.name, reason=reason, message=message, last=world.now) for pod in pods_of(world, field)
    )
    return with_plane(world, warnings=(*known(plane(world).warnings), *found))


def waiting(world: StackWorld, field: str, phase: str, reason: str) -> StackWorld:
    """The pods of an identity do not run, so their probes report nothing."""
    world = with_pods(world, field, lambda pod: replace(pod, is_ready=False, phase=phase, waiting=reason))
    silent = {pod.name: Unread(f"no report from the pod: {reason}") for pod in pods_of(world, field)}
    return with_plane(world, reports={**plane(world).reports, **silent})


def unmounted(world: StackWorld, field: str, message: str) -> StackWorld:
    """New pods of an identity wait for the driver, which says this."""
    name = identity(world, field).secret_provider_class
    mounts = tuple(mount for mount in known(plane(world).mounts) if mount.secret_provider_class != name)
    world = with_plane(warned(world, field, "FailedMount", message), mounts=mounts)
    return waiting(world, field, "Pending", "ContainerCreating: no further message")


def all_unmounted(world: StackWorld, message: str) -> StackWorld:
    for expected in state(world).identities:
        world = unmounted(world, expected.identity, message)
    return world


def refused(world: StackWorld, field: str, error: str) -> StackWorld:
    """The probes of an identity loaded the document, and Entra ID refuses it."""
    unproven = replace(report_of(world, field).proof, ok=False, status=None, error=None)
    return with_reports(world, field, sign_in=ProbeStep(ok=False, error=error), proof=unproven)


def unloaded(world: StackWorld, field: str, error: str) -> StackWorld:
    """The probes of an identity have no document that they can use."""
    world = refused(world, field, error)
    return with_reports(world, field, client_id=None, thumbprint=None, expires=None)


def denied(world: StackWorld, field: str, status: int, error: str) -> StackWorld:
    """The probes of an identity signed in, and their call is refused."""
    proof = replace(report_of(world, field).proof, ok=False, status=status, error=error)
    return with_reports(world, field, proof=proof)


def in_hypershift(world: StackWorld) -> StackWorld:
    """The same stack with HyperShift's control plane on its cluster: its own pods, and a HostedCluster."""
    rows = {row.field: row for row in CONTROL_PLANE}
    [cluster] = state(world).clusters
    spec: dict[str, Any] = {}
    identities: list[Identity] = []
    pods: dict[str, SeenPod] = {}
    names: dict[str, str] = {}
    for expected in cluster.identities:
        mounts = rows[expected.identity].mounts
        changed = replace(expected, mounts=mounts)
        identities.append(changed)
        for pod, mount in zip(pods_of(world, expected.identity), mounts, strict=True):
            [container] = pod.containers.values()
            name = names[pod.name] = f"{mount.deployment}-5d8f9-x2x2x"
            same = replace(pod, name=name, containers={mount.container: container})
            pods[name] = _both(pods[name], same) if name in pods else same
        holder = spec
        for step in expected.hosted_cluster_path[:-1]:
            holder = holder.setdefault(step, {})
        named = {
            "clientID": expected.client_id,
            "credentialsSecretName": expected.secret,
            "objectEncoding": expected.object_encoding,
        }
        holder[expected.hosted_cluster_path[-1]] = named
    available = HostedClusterCondition(CLUSTER, "Available", "True", "AsExpected", "")
    world = with_plane(
        world,
        pods=tuple(pods.values()),
        mounts=tuple(replace(mount, pod=names[mount.pod]) for mount in known(plane(world).mounts)),
        reports={},
        hosted_cluster=SeenHostedCluster(spec=spec, conditions=(available,)),
    )
    changed_cluster = replace(cluster, side="hypershift", identities=tuple(identities))
    return with_state(world, cluster_side="hypershift", clusters=(changed_cluster,))


def _both(first: SeenPod, second: SeenPod) -> SeenPod:
    """One pod with the volumes of two: the control-plane operator has a credential of its own and that of KMS."""
    containers = {
        name: replace(
            container,
            mounts={**container.mounts, **second.containers[name].mounts},
            variables={**container.variables, **second.containers[name].variables},
        )
        for name, container in first.containers.items()
    }
    return replace(first, classes={**first.classes, **second.classes}, containers=containers)


def report_of(world: StackWorld, field: str) -> SeenReport:
    return known(plane(world).reports[pods_of(world, field)[0].name])
