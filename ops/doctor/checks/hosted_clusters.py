"""Whether the HostedCluster's conditions are those of a cluster that runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Stage, of_cluster
from ops.world.expected import Cluster
from ops.world.seen import HostedClusterCondition, NotReadError, Part, StackWorld, entry, known


def _find(world: StackWorld, cluster: Cluster) -> Iterator[Fault]:
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


CHECKS: Final[tuple[Check, ...]] = (of_cluster(Stage.HOSTED_CLUSTERS, "conditions", (Part.CONTROL_PLANES,), _find),)
