"""Whether engine and backend have the whole stack, unlocked, and its deployer has access; whether its configuration is
accepted and brought up, and the HostedCluster has it and runs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from identity.settings.schema.problems import for_stack, value_at
from identity.symptoms import az_login
from ops.doctor.checks.check import Fault, Stage, fault, of_cluster, of_identity, of_stack
from ops.stack.environment import is_local
from ops.world.expected import Cluster, Identity
from ops.world.reader import AZURE, CLUSTER
from ops.world.seen import HostedClusterCondition, NotReadError, Part, SeenLock, StackWorld, Unread, entry, known

# The engine's own error may list every sign-in that it has tried.
_LONGEST_ERROR: Final = 800


@of_stack(Stage.ENGINE, Part.STATE, Part.CONFIGURATION)
def state(world: StackWorld) -> Iterator[Fault]:
    """Whether the engine can read the stack's state."""
    if isinstance(world.state, Unread):
        if not isinstance(world.configuration, Unread) and world.configuration.prevents_sign_in:
            raise NotReadError(world.state.why)
        yield fault(world, "no state", why=textwrap.shorten(world.state.why, _LONGEST_ERROR, placeholder=" ..."))


def _age(world: StackWorld, lock: SeenLock) -> str:
    """The age of a lock, such as `47 minutes`, in the largest unit of which there are two."""
    seconds = max(int((world.now - lock.since).total_seconds()), 0)
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} seconds"


@of_stack(Stage.BACKEND, Part.LOCKS)
def lock(world: StackWorld) -> Iterator[Fault]:
    """Whether a run holds the stack's lock, and since when."""
    for lock in known(world.locks):
        if lock.runs is not False:
            yield fault(world, "locked" if lock.runs else "locked elsewhere", age=_age(world, lock), owner=lock.owner)


@of_stack(Stage.BACKEND, Part.LOCKS)
def abandoned_lock(world: StackWorld) -> Iterator[Fault]:
    """Whether a killed run has left its lock, and the stack incomplete."""
    for lock in known(world.locks):
        if lock.runs is False:
            yield fault(world, "abandoned lock", age=_age(world, lock), owner=lock.owner)


@of_stack(Stage.BACKEND, Part.STATE)
def pending_operations(world: StackWorld) -> Iterator[Fault]:
    """Whether a killed engine left pending operations in the state."""
    if pending := known(world.state).pending:
        yield fault(world, "pending operations", pending=", ".join(pending))


@of_stack(Stage.BACKEND, Part.HISTORY)
def last_run(world: StackWorld) -> Iterator[Fault]:
    """Whether a run of all resources has completed since the last one that failed after a change."""
    run = known(world.last_run)
    if run is not None and run.has_failed:
        fix = world.command("down" if run.kind == "destroy" else "up")
        command = "up" if run.kind == "update" else run.kind
        yield fault(world, "failed run", command=command, started=run.started, fix=fix)


@of_stack(Stage.BACKEND, Part.DECRYPTION)
def decryption(world: StackWorld) -> Iterator[Fault]:
    """Whether the stack's secrets provider decrypts the secrets in its state."""
    if (refusal := known(world.decryption)) is not None:
        yield fault(world, "no decryption", refusal=refusal)


@of_stack(Stage.ACCESS, Part.SIGN_IN, hides=CLUSTER | AZURE)
def azure(world: StackWorld) -> Iterator[Fault]:
    """Whether the deployer can sign in to Azure now."""
    if (refusal := known(world.sign_in)) is not None:
        fix = f"{world.command('up')} starts the local cloud again" if is_local(world.stack) else az_login(refusal)
        yield Fault(evidence=refusal, fix=fix)


@of_stack(Stage.ACCESS, Part.ACCESS, Part.CONFIGURATION, hides={Part.CONTROL_PLANES, Part.REPORTS})
def permissions(world: StackWorld) -> Iterator[Fault]:
    """Whether the deployer has its permissions on the management cluster."""
    access = known(world.access)
    if access.missing and access.is_read_only:
        raise NotReadError(
            f"{access.who} may only read {access.server}, so that the deployer's permissions are not known; run "
            f"{world.command('doctor', '--stage', 'access')} as the deployer"
        )
    if access.missing:
        yield Fault(evidence=f"{access.who} at {access.server} lacks {'; '.join(access.missing)}", fix=access.hint)


@of_stack(Stage.CONFIGURATION, Part.CONFIGURATION)
def settings(world: StackWorld) -> Iterator[Fault]:
    """Whether the settings accept the stack's configuration."""
    configuration = known(world.configuration)
    for value in configuration.refused:
        evidence = f"{value.heading}: found {value.found}; accepted: {value.accepted}"
        fix = for_stack(value.fix, world.stack)
        yield Fault(evidence=evidence, fix=fix, cluster=configuration.cluster_of(value))


@of_stack(Stage.CONFIGURATION, Part.CONFIGURATION, Part.STATE)
def brought_up(world: StackWorld) -> Iterator[Fault]:
    """Whether the configured identities were brought up."""
    state, configuration = known(world.state), known(world.configuration)
    if not state.is_up:
        yield fault(world, "no outputs")
        return
    deployed = {
        cluster.cluster: {identity.identity for identity in (*cluster.identities, *cluster.guests)}
        for cluster in state.clusters
    }
    for name, fields in configuration.identities.items():
        if missing := [field for field in fields if field not in deployed.get(name, ())]:
            problem = ", ".join(missing) if name in deployed else "none of its identities exists"
            yield fault(world, "not brought up", problem=problem, cluster=name)


@of_identity(Stage.CONFIGURATION, Part.CONTROL_PLANES)
def hosted_cluster(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the HostedCluster names each identity as the stack created it, with `clusterSide: hypershift`."""
    if known(world.state).cluster_side == "stack" or not identity.hosted_cluster_path:
        return
    hosted_cluster = known(entry(world.control_planes, identity.cluster).hosted_cluster)
    if hosted_cluster is None:
        raise NotReadError(
            f"there is no HostedCluster {identity.cluster} yet (`.venv/bin/idstack export hypershift` has its files)"
        )
    actual = value_at(hosted_cluster.spec, identity.hosted_cluster_path)
    expected = {
        "clientID": identity.client_id,
        "credentialsSecretName": identity.secret,
        "objectEncoding": identity.object_encoding,
    }
    place = f"spec.{'.'.join(identity.hosted_cluster_path)}"
    if not isinstance(actual, Mapping):
        yield fault(world, "nothing in the HostedCluster", place=place)
        return
    for key, value in expected.items():
        if (found := actual.get(key)) != value:
            yield fault(world, "another value in the HostedCluster", place=place, key=key, actual=found, value=value)


@of_cluster(Stage.HOSTED_CLUSTERS, Part.CONTROL_PLANES)
def conditions(world: StackWorld, cluster: Cluster) -> Iterator[Fault]:
    """Whether the HostedCluster's conditions are those of a cluster that runs."""
    if cluster.side == "stack":
        return
    hosted_cluster = known(entry(world.control_planes, cluster.cluster).hosted_cluster)
    if hosted_cluster is None:
        raise NotReadError(f"there is no HostedCluster {cluster.home}/{cluster.cluster} yet")
    unexpected = sorted((condition for condition in hosted_cluster.conditions if not condition.is_expected), key=_rank)
    causes = [condition for condition in unexpected if condition.status != _UNKNOWN] or unexpected
    for cause in causes:
        condition = f"{cause.type} is {cause.status} ({cause.reason}): {cause.message}".rstrip(": ")
        yield fault(world, "condition", condition=condition, home=cluster.home, name=cluster.cluster)
    if consequences := [condition.type for condition in unexpected if condition not in causes]:
        yield fault(world, "consequences", cause=causes[0].type, consequences=", ".join(consequences))


# HyperShift reads the specification first: nothing else can become true while these are not
# (openshift/hypershift api/v1beta1/hostedcluster_conditions.go, hostedcluster_controller.go).
_FIRST: Final = ("Valid", "Supported")
# The status of a condition whose source does not exist: the hosted control plane, or the cluster version.
_UNKNOWN: Final = "Unknown"


def _rank(condition: HostedClusterCondition) -> int:
    """Causes come before consequences."""
    if condition.status == _UNKNOWN:
        return 2
    return 0 if condition.type.startswith(_FIRST) else 1
