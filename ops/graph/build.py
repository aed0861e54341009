"""Builds the graph from what `status` reads: outputs, probes, managed identities, the management cluster, the state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from identity import resource_types, roles
from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL, WORKLOAD
from identity.catalogue_rows import ControlPlaneIdentity, DataPlaneIdentity, OptionalManagedIdentity
from identity.outputs import HostedClusterOutput
from ops.doctor.checks.check import CheckResult
from ops.doctor.examination import Status
from ops.graph.model import (
    TABLES,
    GraphEdge,
    GraphNode,
    Health,
    IdentityGraph,
    NodeKind,
    Relation,
    facts,
    joined,
    node_id,
    scope_name,
    with_remedy,
    worst,
)
from ops.outputs.rows import Row, rendered
from ops.stack.state import StateResource
from ops.world import ownership
from ops.world.azure import ManagedIdentityRow, State
from ops.world.cluster_state import MountedVersion, ProbeResult, by_identity
from ops.world.ownership import Ownership, ResourceOwner

# Ids of what belongs to the whole stack.
VAULT: Final = node_id(NodeKind.VAULT)
KEY_VAULT_USER: Final = node_id(NodeKind.KEY_VAULT_USER)
_ROWS: Final = {row.field: row for row in CONTROL_PLANE}
_ROWS_OF_MANAGED: Final[tuple[OptionalManagedIdentity | DataPlaneIdentity, ...]] = (*DATA_PLANE, *OPTIONAL, *WORKLOAD)
_MANAGED: Final = {row.field: row for row in _ROWS_OF_MANAGED}
_HEALTH: Final = {state: Health(health) for state, health in TABLES["states"].items()}
_WRONG: Final = {"old": "the mounted version is old", "not mounted": "nothing is mounted"}


def build(sources: Status) -> IdentityGraph:
    """The graph; hosted clusters and identities are in the order of `status`."""
    assembly = _Assembly(sources, grants(sources.resources))
    _add_shared(assembly)
    for name, described in sources.outputs.get("hostedClusters", {}).items():
        _add_cluster(assembly, name, described)
    probes = () if sources.unreachable is None else (f"the credential probes: {sources.unreachable}",)
    nodes, edges = tuple(assembly.nodes.values()), tuple(assembly.edges)
    return IdentityGraph(sources.stack, sources.at, nodes, edges, (*probes, *sources.unread))


def _add_shared(assembly: _Assembly) -> None:
    """Add the vault and the key-vault-user, whose role on a shared vault is in the state of the shared stack."""
    outputs = assembly.sources.outputs
    vault_id = outputs.get("keyVaultId")
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
        facts=facts(client_ID=outputs.get("keyVaultUserClientId")),
    )
    assembly.add(_with_findings(vault, assembly.sources.of(None, None, "vault")))
    assembly.add(_with_findings(user, assembly.sources.of(None, None, "reader-role")))
    for grant in held:
        role = assembly.reader_role(grant)
        if vault_id is not None and grant.scope.lower() == vault_id.lower():
            assembly.connect(role, Relation.AT, VAULT)


def _add_cluster(assembly: _Assembly, name: str, described: HostedClusterOutput[str]) -> None:
    sources, cluster = assembly.sources, node_id(NodeKind.HOSTED_CLUSTER, name)
    # Its place is before its identities, whose health it takes.
    assembly.add(GraphNode(id=cluster, kind=NodeKind.HOSTED_CLUSTER, name=name))
    mounted = by_identity(sources.cluster_state.mounts)
    identities = [
        _add_control_plane_identity(assembly, row, mounted.get((name, row.identity), ()))
        for row in sources.rows
        if row.cluster == name
    ]
    compared = described.get("managedIdentities", {})
    identities += [
        _add_managed_identity(assembly, ResourceOwner(name, identity), client_id)
        for identity, client_id in described.get("dataPlane", {}).items()
        if identity not in compared
    ]
    identities += [
        _add_managed_identity(assembly, ResourceOwner(name, row.identity), row.client_id, row)
        for row in sources.managed.rows
        if row.cluster == name
    ]
    for identity in identities:
        assembly.connect(cluster, Relation.USES, identity)
    # A condition about progress with an unexpected status is a warning.
    conditions = {
        f"{condition.type} is {condition.status}: {condition.message or condition.reason}": (
            Health.WARNING if "Progressing" in condition.type or condition.status == "Unknown" else Health.ERROR
        )
        for condition in sources.cluster_state.conditions
        if condition.cluster == name and not condition.is_expected
    }
    nodes = [assembly.nodes[identity] for identity in identities]
    namespace = described.get("namespace")
    fix = joined(dict(node.facts).get("fix", "") for node in nodes)
    found = replace(
        assembly.nodes[cluster],
        detail=f"namespace {namespace}" if namespace else "",
        cluster=name,
        health=worst([*(node.health for node in nodes), *conditions.values()]),
        reason=joined([*conditions, *(f"{node.name}: {node.reason}" for node in nodes if node.reason)]),
        facts=facts(
            fix=fix,
            conditions=joined(conditions),
            namespace=namespace,
            infra_ID=described.get("hostedClusterSpec", {}).get("infraID"),
        ),
    )
    assembly.nodes[cluster] = with_remedy(found, sources.stack)


def _add_managed_identity(
    assembly: _Assembly, owner: ResourceOwner, client_id: str, compared: ManagedIdentityRow | None = None
) -> str:
    """Add a managed identity with its service accounts. Returns its id.

    One that `status` compares with Azure has a health, and probes of its service accounts may refuse; another one of
    the guest cluster has none.
    """
    row = _MANAGED[owner.identity]
    states = {credential.subject: credential.state for credential in compared.federated} if compared else {}
    refused = {
        account.of.subject: _refusal(account.probe)
        for account in assembly.sources.accounts
        if ResourceOwner(account.of.cluster, account.of.row.field) == owner and not account.probe.is_ready
    }
    identity = GraphNode.part(NodeKind.IDENTITY, owner, owner.identity)
    if compared is None:
        known = facts(kind="managed identity of the guest cluster", client_ID=client_id)
    else:
        known = facts(kind="managed identity", client_ID=client_id, resource_ID=compared.resource_id)
        wrong = [f"the managed identity is {compared.state} in Azure"] if _is_wrong(compared.state) else []
        wrong += [
            f"the federated credential {credential.name} is {credential.state}"
            for credential in compared.federated
            if _is_wrong(credential.state)
        ]
        health = Health.ERROR if refused else worst(_HEALTH[state] for state in (compared.state, *states.values()))
        identity = replace(identity, health=health, reason="; ".join([*wrong, *refused.values()]))
    assembly.add(replace(identity, detail=row.description, facts=known))
    subjects = [subject.subject for subject in row.subjects]
    ids = [assembly.service_account(owner, name, states.get(name), refused.get(name, "")) for name in subjects]
    assembly.roles(owner, ids)
    return identity.id


def _refusal(probe: ProbeResult) -> str:
    if probe.report is None:
        return probe.problem or "no report"
    return probe.report.sign_in.error or probe.report.proof.error or "no sign-in yet"


def _is_wrong(state: State | None) -> bool:
    return state is not None and _HEALTH[state] is Health.ERROR


def _add_control_plane_identity(assembly: _Assembly, row: Row, mounted: Sequence[MountedVersion]) -> str:
    """Add an identity with its secret, class, pods and roles; `mounted` are its own versions. Returns its id."""
    catalogued, owner = _ROWS[row.identity], ResourceOwner(row.cluster, row.identity)

    def findings(*checks: str) -> Sequence[CheckResult]:
        return assembly.sources.of(row.cluster, row.identity, *checks)

    is_read = assembly.sources.is_made(row.cluster, row.identity, "secret")
    secret = _with_findings(
        _secret(row, owner, assembly.sources.at, is_read=is_read), findings("secret", "secret-reader")
    )
    pods = []
    for name, container, probe, own in _consumers(row, catalogued, mounted):
        # A finding about all pods of the identity names none.
        silent = findings("pod") if probe is not None and probe.report is None else ()
        about = dict.fromkeys([*(one for one in findings("mount", "pod") if _is_of(one, own)), *silent])
        pods.append(_with_findings(_pod(owner, name, container, probe, own), tuple(about)))
    role_health, role_reason = _proof(row.probes)
    unread = assembly.sources.unchecked(lambda one: (one.cluster, one.identity) == (row.cluster, row.identity))
    identity = replace(
        GraphNode.part(NodeKind.IDENTITY, owner, row.identity),
        detail=catalogued.description,
        health=worst([secret.health, *(pod.health for pod in pods), role_health, Health.UNKNOWN if unread else None]),
        reason=joined([secret.reason, *(pod.reason for pod in pods), role_reason, *unread]),
        facts=facts(kind="control-plane identity", client_ID=row.client_id),
    )
    identity = _with_findings(identity, findings())
    provider = GraphNode.part(NodeKind.SECRET_PROVIDER_CLASS, owner, row.secret_provider_class)
    provider = _with_findings(
        provider, [*findings("class"), *(one for one in findings("mount") if not _is_of(one, mounted))]
    )
    for node in (identity, secret, provider, *pods):
        assembly.add(node)
    assembly.connect(identity.id, Relation.STORED_IN, secret.id)
    assembly.connect(secret.id, Relation.STORED_IN, VAULT)
    assembly.connect(secret.id, Relation.FETCHED_BY, provider.id)
    assembly.connect(provider.id, Relation.FETCHES_AS, KEY_VAULT_USER)
    for pod in pods:
        assembly.connect(provider.id, Relation.MOUNTED_IN, pod.id)
    for grant in assembly.grants.get(ownership.KEY_VAULT_USER, ()):
        if grant.scope.endswith(f"/secrets/{row.secret}"):
            assembly.connect(assembly.reader_role(grant), Relation.AT, secret.id)
    assembly.roles(owner, [pod.id for pod in pods], role_health, role_reason, findings("role"))
    return identity.id


def _is_of(finding: CheckResult, mounted: Sequence[MountedVersion]) -> bool:
    return any(version.pod in finding.evidence for version in mounted)


def _secret(row: Row, owner: ResourceOwner, now: datetime, *, is_read: bool) -> GraphNode:
    """The secret, whose health follows from the dates: from `renewAfter` on `make renew` renews the certificate."""
    health, reason, detail = Health.UNKNOWN, "", "expiry not known"
    if row.not_after is not None:
        health, detail = Health.OK, f"{row.days_left(now)} days, until {row.not_after:%Y-%m-%d}"
        if row.renew_after is not None and row.renew_after <= now:
            health, reason = Health.WARNING, f"the renewal is due since {row.renew_after:%Y-%m-%d}"
        if row.has_expired(now):
            detail = f"expired {row.not_after:%Y-%m-%d}"
            health, reason = Health.ERROR, f"the certificate expired on {row.not_after:%Y-%m-%d}"
    if health is Health.OK and not is_read:
        health, reason = Health.UNKNOWN, "it was not read; the dates are those of the last run"
    return replace(
        GraphNode.part(NodeKind.SECRET, owner, row.secret),
        detail=detail,
        health=health,
        reason=reason,
        expires=row.not_after,
        renew_after=row.renew_after,
        facts=facts(
            expires=rendered(row.not_after), renewal_after=rendered(row.renew_after), thumbprint=row.thumbprint
        ),
    )


def _consumers(
    row: Row, catalogued: ControlPlaneIdentity, mounted: Sequence[MountedVersion]
) -> Iterator[tuple[str, str, ProbeResult | None, list[MountedVersion]]]:
    """Deployment and container of each mount, its probe, and the pods that have the secret mounted.

    A pod that belongs to no known Deployment is a consumer of its own.
    """
    prefixes = {
        prefix: mount for mount in catalogued.mounts for prefix in (mount.deployment, catalogued.probe_name(mount))
    }
    of_mount: dict[str, list[MountedVersion]] = {}
    for version in mounted:
        # `probe-kms-2-...` also begins with `probe-kms-`.
        prefix = max((prefix for prefix in prefixes if version.pod.startswith(f"{prefix}-")), key=len, default=None)
        of_mount.setdefault(prefixes[prefix].deployment if prefix else version.pod, []).append(version)
    for mount, probe in zip(catalogued.mounts, row.probes or [None] * len(catalogued.mounts), strict=True):
        yield mount.deployment, mount.container, probe, of_mount.pop(mount.deployment, [])
    for pod, versions in of_mount.items():
        yield pod, "", None, versions


def _pod(
    owner: ResourceOwner, name: str, container: str, probe: ProbeResult | None, versions: Sequence[MountedVersion]
) -> GraphNode:
    mounted = {version.pod: f"{version.version} ({version.state})" for version in versions}
    signs_in, problem, report = None, "", None
    if probe is not None:
        # Whether it has the credential and signs in with it; a refused proof call concerns the role.
        report = probe.report
        signs_in = Health.OK if report is not None and report.sign_in.ok else Health.ERROR
        problem = "" if signs_in is Health.OK else _refusal(probe)
    known = facts(
        container=container,
        probe=None if probe is None else probe.pod,
        credential_file=None if report is None else report.document.get("credentialFile"),
        proof_call=f"{report.proof.status} {report.proof.action}"
        if report is not None and report.proof.status
        else None,
    )
    wrong = [f"{version.pod}: {_WRONG[version.state]}" for version in versions if version.state in _WRONG]
    states = sorted({version.state for version in versions}, key=list(_HEALTH).index)
    words = [f"{len(versions)} {'pod' if len(versions) == 1 else 'pods'}, {', '.join(states)}"] if versions else []
    if signs_in is not None:
        words.append("sign-in ok" if signs_in is Health.OK else "sign-in failed")
    return replace(
        GraphNode.part(NodeKind.POD, owner, name),
        detail="; ".join(words) or container,
        health=worst([*(_HEALTH[version.state] for version in versions), signs_in]),
        reason=joined([*wrong, problem]),
        facts=(*known, *mounted.items()),
    )


def _proof(probes: Sequence[ProbeResult]) -> tuple[Health | None, str]:
    """Whether the role grants the proof call, by the probes that signed in."""
    signed_in = [probe.report for probe in probes if probe.report is not None and probe.report.sign_in.ok]
    if not signed_in:
        return (Health.UNKNOWN if probes else None), ""
    refused = [report.proof.error or "no proof call yet" for report in signed_in if not report.proof.ok]
    return (Health.ERROR if refused else Health.OK), joined(refused)


_NAMES: Final = {
    **{role.guid: role.name for role in vars(roles).values() if isinstance(role, roles.Role)},
    roles.MANAGED_HSM_CRYPTO_USER: "Managed HSM Crypto User",
}


@dataclass(frozen=True)
class RoleAtScope:
    """A role at a scope: an ARM id, or the address of a managed HSM with a path in it."""

    role: str  # Azure's display name; the GUID of an unknown role
    guid: str
    scope: str


def grants(resources: Collection[StateResource]) -> dict[ResourceOwner, list[RoleAtScope]]:
    """The grants by holder, each in the state's order."""
    owners = Ownership.of(resources)
    by_holder: dict[ResourceOwner, list[RoleAtScope]] = {}
    for resource in resources:
        written = resource.get("inputs", {})
        if resource.get("delete"):
            continue
        if resource["type"] == resource_types.ROLE_ASSIGNMENT:
            guid, scope = str(written["roleDefinitionId"]).rpartition("/")[2], str(written["scope"])
        elif resource["type"] == resource_types.HSM_ROLE_ASSIGNMENT:
            guid, scope = str(written["roleDefinition"]), f"{written['hsm']}{written['scope']}"
        else:
            continue
        grant = RoleAtScope(_NAMES.get(guid, guid), guid, scope)
        by_holder.setdefault(owners.holder(resource["urn"]), []).append(grant)
    return by_holder


@dataclass
class _Assembly:
    """Nodes by id, and edges, each once and in order of insertion; `grants` are by holder."""

    sources: Status
    grants: Mapping[ResourceOwner, Sequence[RoleAtScope]]
    nodes: dict[str, GraphNode] = field(default_factory=dict)
    edges: dict[GraphEdge, None] = field(default_factory=dict)

    def add(self, node: GraphNode) -> str:
        """Add a node that is not there yet; returns its id."""
        return self.nodes.setdefault(node.id, with_remedy(node, self.sources.stack)).id

    def connect(self, source: str, relation: Relation, target: str) -> None:
        self.edges[GraphEdge(source, relation, target)] = None

    def reader_role(self, grant: RoleAtScope) -> str:
        """Add a role of the key-vault-user, which may hold it at many scopes; returns its id."""
        node = GraphNode(
            id=node_id(NodeKind.ROLE, ownership.KEY_VAULT_USER.identity, grant.guid),
            kind=NodeKind.ROLE,
            name=grant.role,
            facts=facts(role_definition=grant.guid),
        )
        self.connect(KEY_VAULT_USER, Relation.HOLDS, self.add(node))
        return node.id

    def service_account(self, owner: ResourceOwner, subject: str, state: State | None = None, refusal: str = "") -> str:
        """Add a service account that an identity trusts; returns its id.

        Its health is that of the federated credential and its probe, None if neither is read.
        """
        namespace, _, name = subject.removeprefix("system:serviceaccount:").partition(":")
        account = replace(
            GraphNode.part(NodeKind.SERVICE_ACCOUNT, owner, name),
            detail=namespace,
            health=Health.ERROR if refusal else state and _HEALTH[state],
            reason=f"the federated credential is {state} in Azure" if _is_wrong(state) else refusal,
            facts=facts(subject=subject),
        )
        self.connect(_identity_id(owner), Relation.TRUSTS, self.add(account))
        return account.id

    def roles(
        self,
        owner: ResourceOwner,
        actors: Sequence[str],
        health: Health | None = None,
        reason: str = "",
        findings: Sequence[CheckResult] = (),
    ) -> None:
        """Add the roles of an identity with their scopes; `actors` are the ids of the pods that use them."""
        for grant in self.grants.get(owner, ()):
            known = facts(role_definition=grant.guid)
            node = replace(GraphNode.part(NodeKind.ROLE, owner, grant.role), health=health, reason=reason, facts=known)
            role = self.add(_with_findings(node, findings))
            self.connect(_identity_id(owner), Relation.HOLDS, role)
            for actor in actors:
                self.connect(actor, Relation.ACTS_WITH, role)
            name, kind = scope_name(grant.scope)
            scope = GraphNode(
                id=node_id(NodeKind.SCOPE, grant.scope.lower()),
                kind=NodeKind.SCOPE,
                name=name,
                detail=kind,
                facts=facts(resource_ID=grant.scope),
            )
            self.connect(role, Relation.AT, self.add(scope))


def _identity_id(owner: ResourceOwner) -> str:
    return node_id(NodeKind.IDENTITY, owner.cluster, owner.identity, owner.identity)


def _with_findings(node: GraphNode, findings: Sequence[CheckResult]) -> GraphNode:
    """The node with the doctor's evidence as its reason and the fixes among its facts; the same without findings."""
    if not findings:
        return node
    return replace(
        node,
        health=Health.ERROR,
        reason=joined([*(one.evidence for one in findings if one.evidence not in node.reason), node.reason]),
        facts=(*facts(fix=joined(finding.fix for finding in findings)), *node.facts),
    )
