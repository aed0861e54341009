"""Whether the configuration is accepted and brought up, and the HostedCluster has it and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from identity.settings.schema.problems import for_stack, value_at
from ops.doctor.checks.check import Fault, Stage, of_cluster, of_identity, of_stack
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
        yield Fault(evidence="the state has no outputs: no `up` of the stack has ended yet", fix=world.command("up"))
        return
    deployed = {
        cluster.cluster: {identity.identity for identity in (*cluster.identities, *cluster.guests)}
        for cluster in state.clusters
    }
    for name, fields in configuration.identities.items():
        if missing := [field for field in fields if field not in deployed.get(name, ())]:
            problem = ", ".join(missing) if name in deployed else "none of its identities exists"
            yield Fault(evidence=f"configured and not brought up yet: {problem}", fix=world.command("up"), cluster=name)


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
    fix = (
        f"write the values of {world.command('export', 'hypershift')} into the HostedCluster, or let the stack apply it"
    )
    if not isinstance(actual, Mapping):
        yield Fault(evidence=f"the HostedCluster has no {place}", fix=fix)
        return
    for key, value in expected.items():
        if actual.get(key) != value:
            yield Fault(evidence=f"{place}.{key} is {actual.get(key)!r}; the stack has {value!r}", fix=fix)


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
        yield Fault(
            evidence=f"{cause.type} is {cause.status} ({cause.reason}): {cause.message}".rstrip(": "),
            fix=f"`kubectl --namespace {cluster.home} describe hostedcluster {cluster.cluster}`; "
            "docs/reference/symptoms.md has what each condition says about the identities",
        )
    if consequences := [condition.type for condition in unexpected if condition not in causes]:
        yield Fault(
            evidence=f"a consequence of {causes[0].type}: HyperShift does not know yet about {', '.join(consequences)}",
            fix=f"correct {causes[0].type}, then run the doctor again",
        )


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
