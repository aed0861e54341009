"""The managed identities of a hosted cluster, which trust service accounts or are attached to nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from identity.catalogue import DATA_PLANE, OPTIONAL, WORKLOAD
from identity.catalogue_rows import DataPlaneIdentity, FederatedSubject, OptionalManagedIdentity
from ops.graph.assembly import Assembly
from ops.graph.model import GraphNode, Health, NodeKind, Relation, facts, worst
from ops.world.compared_identities import ManagedIdentityRow, State
from ops.world.probes import ProbeResult

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
