"""Whether the HostedCluster's conditions are those of a cluster that runs."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, of_cluster
from ops.doctor.model.expected import Cluster
from ops.doctor.model.seen import NotRead, entry, known
from ops.doctor.model.world import World


def _find(world: World, cluster: Cluster) -> Iterator[Fault]:
    if known(world.state).cluster_side == "stack":
        return
    found = known(entry(world.control_planes, cluster.cluster).hosted_cluster)
    if found is None:
        raise NotRead(f"there is no HostedCluster {cluster.home}/{cluster.cluster} yet")
    for each in found.conditions:
        if not each.is_expected:
            yield Fault(
                evidence=f"{each.type} is {each.status} ({each.reason}): {each.message}".rstrip(": "),
                fix=f"`kubectl --namespace {cluster.home} describe hostedcluster {cluster.cluster}`; "
                "docs/troubleshooting.md has what each condition says about the identities",
            )


CHECK = of_cluster(Stage.HOSTED_CLUSTERS, "conditions", (Part.CONTROL_PLANES,), _find)
