"""The graph out of what `status` reads: outputs, probes, managed identities, the management cluster, and the state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from identity.outputs import HostedClusterOutput, StackOutputs
from ops.doctor.examination import Examination
from ops.graph.assembly import KEY_VAULT_USER, VAULT, Assembly
from ops.graph.credentials import add_control_plane_identity, by_identity
from ops.graph.findings import blamed
from ops.graph.grants import grants
from ops.graph.managed import add_compared_identity, add_data_plane_identity
from ops.graph.model import GraphNode, Health, IdentityGraph, NodeKind, Relation, facts, node_id, together, worst
from ops.outputs.rows import Row
from ops.stack.state import StateResource
from ops.world import ownership
from ops.world.cluster_state import ClusterState
from ops.world.compared_identities import ManagedIdentities


@dataclass(frozen=True, kw_only=True)
class GraphSources:
    """What is known of a stack: its outputs, the rows of `status`, and the resources in its state.

    `state` is None if the stack has no management cluster to read; `unread` is what else could not be read.
    """

    stack: str
    at: datetime
    outputs: StackOutputs[str]
    rows: Sequence[Row]
    managed: ManagedIdentities
    state: ClusterState | None
    resources: Collection[StateResource]
    examination: Examination = field(default_factory=Examination)
    unread: tuple[str, ...] = ()


def build(sources: GraphSources) -> IdentityGraph:
    """The graph; hosted clusters and identities are in the order of `status`."""
    assembly = Assembly(grants(sources.resources), sources.examination)
    state = sources.state or ClusterState()
    _add_shared(assembly, sources.outputs)
    for name, described in sources.outputs.get("hostedClusters", {}).items():
        _add_cluster(assembly, sources, state, name, described)
    unread = (*sources.unread, *sources.managed.unread, *state.unread)
    return IdentityGraph(sources.stack, sources.at, tuple(assembly.nodes.values()), tuple(assembly.edges), unread)


def _add_shared(assembly: Assembly, outputs: StackOutputs[str]) -> None:
    """Vault and key-vault-user. A stack that shares another's has its vault, and not the role on it."""
    vault_id, client_id = outputs.get("keyVaultId"), outputs.get("keyVaultUserClientId")
    vault = GraphNode(
        id=VAULT,
        kind=NodeKind.VAULT,
        name=outputs.get("keyVaultName", "key vault"),
        detail="key vault",
        facts=facts(address=outputs.get("keyVaultUri"), resource_ID=vault_id),
    )
    held = assembly.grants.get(ownership.KEY_VAULT_USER, ())
    user = GraphNode(
        id=KEY_VAULT_USER,
        kind=NodeKind.KEY_VAULT_USER,
        name=ownership.KEY_VAULT_USER.identity,
        detail=", ".join(dict.fromkeys(grant.role for grant in held)),
        facts=facts(client_ID=client_id),
    )
    assembly.add(blamed(vault, assembly.examination.of(None, None, "vault")))
    assembly.add(blamed(user, assembly.examination.of(None, None, "reader-role")))
    for grant in held:
        role = assembly.reader_role(grant)
        if vault_id is not None and grant.scope.lower() == vault_id.lower():
            assembly.connect(role, Relation.AT, VAULT)


def _add_cluster(
    assembly: Assembly, sources: GraphSources, state: ClusterState, name: str, described: HostedClusterOutput[str]
) -> None:
    cluster = node_id(NodeKind.HOSTED_CLUSTER, name)
    # Its place is before its identities, whose health it takes.
    assembly.add(GraphNode(id=cluster, kind=NodeKind.HOSTED_CLUSTER, name=name))
    mounted = by_identity(state.mounts)
    identities = [
        add_control_plane_identity(assembly, row, mounted.get((name, row.identity), ()), sources.at)
        for row in sources.rows
        if row.cluster == name
    ]
    compared = described.get("managedIdentities", {})
    for identity, client_id in described.get("dataPlane", {}).items():
        if identity in compared:
            continue
        identities.append(add_data_plane_identity(assembly, name, identity, client_id))
    identities += [add_compared_identity(assembly, each) for each in sources.managed.rows if each.cluster == name]
    for identity in identities:
        assembly.connect(cluster, Relation.USES, identity)
    conditions = _conditions(state, name)
    found = [assembly.nodes[each] for each in identities]
    namespace = described.get("namespace")
    assembly.nodes[cluster] = GraphNode(
        id=cluster,
        kind=NodeKind.HOSTED_CLUSTER,
        name=name,
        detail=f"namespace {namespace}" if namespace else "",
        cluster=name,
        health=worst([*(each.health for each in found), *conditions.values()]),
        reason=together([*conditions, *(f"{each.name}: {each.reason}" for each in found if each.reason)]),
        facts=facts(namespace=namespace, infra_ID=described.get("hostedClusterSpec", {}).get("infraID")),
    )


def _conditions(state: ClusterState, cluster: str) -> dict[str, Health]:
    """The HostedCluster's conditions that are not as expected; one that still progresses is no error."""
    return {
        f"{each.type} is {each.status}: {each.message or each.reason}": (
            Health.WARNING if "Progressing" in each.type or each.status == "Unknown" else Health.ERROR
        )
        for each in state.conditions
        if each.cluster == cluster and not each.is_expected
    }
