"""Whether the configuration is accepted and brought up, and the HostedCluster has it and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from identity.settings.schema.problems import for_stack, value_at
from ops.doctor.checks.check import Fault, Stage, fault, of_cluster, of_identity, of_stack
from ops.world.expected import Cluster, Identity
from ops.world.seen import HostedClusterCondition, NotReadError, Part, StackWorld, entry, known


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
