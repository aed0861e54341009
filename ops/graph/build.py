"""Builds the graph from what `status` reads: outputs, probes, managed identities, the management cluster, the state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from identity.catalogue import DATA_PLANE, OPTIONAL, WORKLOAD
from identity.catalogue_rows import DataPlaneIdentity, FederatedSubject, OptionalManagedIdentity
from identity.outputs import HostedClusterOutput, StackOutputs
from ops.doctor.examination import Examination
from ops.graph.credentials import KEY_VAULT_USER, VAULT, Assembly, add_control_plane_identity, grants, with_findings
from ops.graph.model import GraphNode, Health, IdentityGraph, NodeKind, Relation, facts, joined, node_id, worst
from ops.outputs.rows import Row, TokenRow
from ops.stack.state import StateResource
from ops.world import ownership
from ops.world.cluster_state import ClusterState, by_identity
from ops.world.compared_identities import ManagedIdentities, ManagedIdentityRow, State
from ops.world.probes import ProbeResult


@dataclass(frozen=True, kw_only=True)
class GraphSources:
    """The sources of a stack's graph: its outputs, the rows of `status`, and the resources in its state.

    `state` is None for a stack without a management cluster; `unread` names other sources that could not be read.
    """

    stack: str
    at: datetime
    outputs: StackOutputs[str]
    rows: Sequence[Row]
    managed: ManagedIdentities
    accounts: Sequence[TokenRow]
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
    """Add the vault and the key-vault-user, whose role on a shared vault is in the state of the shared stack."""
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
    assembly.add(with_findings(vault, assembly.examination.of(None, None, "vault")))
    assembly.add(with_findings(user, assembly.examination.of(None, None, "reader-role")))
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
        if identity not in compared:
            identities.append(add_data_plane_identity(assembly, name, identity, client_id))
    probes = {(row.of.row.field, row.of.subject): row.probe for row in sources.accounts if row.of.cluster == name}
    identities += [
        add_compared_identity(
            assembly, row, {subject: probe for (field, subject), probe in probes.items() if field == row.identity}
        )
        for row in sources.managed.rows
        if row.cluster == name
    ]
    for identity in identities:
        assembly.connect(cluster, Relation.USES, identity)
    conditions = _conditions(state, name)
    nodes = [assembly.nodes[identity] for identity in identities]
    namespace = described.get("namespace")
    assembly.nodes[cluster] = GraphNode(
        id=cluster,
        kind=NodeKind.HOSTED_CLUSTER,
        name=name,
        detail=f"namespace {namespace}" if namespace else "",
        cluster=name,
        health=worst([*(node.health for node in nodes), *conditions.values()]),
        reason=joined([*conditions, *(f"{node.name}: {node.reason}" for node in nodes if node.reason)]),
        facts=facts(namespace=namespace, infra_ID=described.get("hostedClusterSpec", {}).get("infraID")),
    )


def _conditions(state: ClusterState, cluster: str) -> dict[str, Health]:
    """The HostedCluster's conditions with an unexpected status; one about progress is a warning."""
    return {
        f"{condition.type} is {condition.status}: {condition.message or condition.reason}": (
            Health.WARNING if "Progressing" in condition.type or condition.status == "Unknown" else Health.ERROR
        )
        for condition in state.conditions
        if condition.cluster == cluster and not condition.is_expected
    }


_DATA_PLANE: Final = {row.field: row for row in DATA_PLANE}
_COMPARED: Final[Mapping[str, OptionalManagedIdentity | DataPlaneIdentity]] = {
    **{row.field: row for row in OPTIONAL},
    **{row.field: row for row in WORKLOAD},
}
_HEALTH: Final[Mapping[State, Health]] = {
    "exists": Health.OK,
    "missing": Health.ERROR,
    "replaced": Health.ERROR,
    "not known": Health.UNKNOWN,
}


def add_data_plane_identity(assembly: Assembly, cluster: str, field: str, client_id: str) -> str:
    """Add an identity of the guest cluster, which has no health. Returns its id."""
    row = _DATA_PLANE[field]
    identity = GraphNode.part(
        NodeKind.IDENTITY,
        cluster,
        field,
        field,
        detail=row.description,
        facts=facts(kind="managed identity of the guest cluster", client_ID=client_id),
    )
    assembly.add(identity)
    accounts = [_service_account(assembly, identity, subject, None) for subject in row.subjects]
    assembly.roles(identity, accounts)
    return identity.id


def add_compared_identity(assembly: Assembly, compared: ManagedIdentityRow, probes: Mapping[str, ProbeResult]) -> str:
    """Add a managed identity as `status` shows it, with its service accounts' `probes` by subject. Returns its id."""
    row = _COMPARED[compared.identity]
    states = {credential.subject: credential.state for credential in compared.federated}
    wrong = [
        f"the federated credential {credential.name} is {credential.state}"
        for credential in compared.federated
        if _is_wrong(credential.state)
    ]
    if _is_wrong(compared.state):
        wrong.insert(0, f"the managed identity is {compared.state} in Azure")
    refused = {subject: _refusal(probe) for subject, probe in probes.items() if not probe.is_ready}
    wrong += refused.values()
    identity = GraphNode.part(
        NodeKind.IDENTITY,
        compared.cluster,
        compared.identity,
        compared.identity,
        detail=row.description,
        health=Health.ERROR if refused else worst(_HEALTH[state] for state in (compared.state, *states.values())),
        reason="; ".join(wrong),
        facts=facts(kind="managed identity", client_ID=compared.client_id, resource_ID=compared.resource_id),
    )
    assembly.add(identity)
    accounts = [
        _service_account(assembly, identity, subject, states[subject.subject], refused.get(subject.subject, ""))
        for subject in row.subjects
    ]
    assembly.roles(identity, accounts)
    return identity.id


def _refusal(probe: ProbeResult) -> str:
    """Why a probe is not ready."""
    if probe.report is None:
        return probe.problem or "no report"
    return probe.report["signIn"]["error"] or probe.report["proof"]["error"] or "no sign-in yet"


def _service_account(
    assembly: Assembly, identity: GraphNode, subject: FederatedSubject, state: State | None, refusal: str = ""
) -> str:
    """Add a service account; its health is that of the federated credential and its probe, None if neither is read."""
    assert identity.cluster is not None
    assert identity.identity is not None
    namespace, _, name = subject.subject.removeprefix("system:serviceaccount:").partition(":")
    account = assembly.add(
        GraphNode.part(
            NodeKind.SERVICE_ACCOUNT,
            identity.cluster,
            identity.identity,
            name,
            detail=namespace,
            health=Health.ERROR if refusal else state and _HEALTH[state],
            reason=f"the federated credential is {state} in Azure" if state and _is_wrong(state) else refusal,
            facts=facts(subject=subject.subject),
        )
    )
    assembly.connect(identity.id, Relation.TRUSTS, account)
    return account


def _is_wrong(state: State) -> bool:
    return _HEALTH[state] is Health.ERROR
