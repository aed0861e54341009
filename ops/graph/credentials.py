"""The chain of a control-plane identity: its secret, the SecretProviderClass, the pods that mount it, and its roles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from identity import resource_types, roles
from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from ops.doctor.diagnosis import CheckResult
from ops.doctor.examination import Examination
from ops.graph.model import Facts, GraphEdge, GraphNode, Health, NodeKind, Relation, facts, joined, node_id, worst
from ops.outputs.rows import Row, rendered
from ops.stack.state import StateResource
from ops.world import ownership
from ops.world.cluster_state import MountedVersion
from ops.world.ownership import Ownership, ResourceOwner
from ops.world.probes import ProbeResult

_ROWS: Final = {row.field: row for row in CONTROL_PLANE}
_MOUNTED: Final = {
    "current": Health.OK,
    "old": Health.WARNING,
    "not mounted": Health.ERROR,
    "not known": Health.UNKNOWN,
}


def add_control_plane_identity(assembly: Assembly, row: Row, mounted: Sequence[MountedVersion], now: datetime) -> str:
    """Add an identity with its chain; `mounted` are its own versions. Returns the identity's id."""
    catalogued = _ROWS[row.identity]
    examination = assembly.examination
    secret = with_findings(_secret(row, now), examination.of(row.cluster, row.identity, "secret", "secret-reader"))
    pods = [_pod(row, *consumer) for consumer in _consumers(row, catalogued, mounted)]
    role_health, role_reason = _proof(row.probes)
    if lost := [finding.evidence for finding in examination.of(row.cluster, row.identity, "role")]:
        role_health, role_reason = Health.ERROR, joined([*lost, role_reason])
    identity = GraphNode.part(
        NodeKind.IDENTITY,
        row.cluster,
        row.identity,
        row.identity,
        detail=catalogued.description,
        health=worst([secret.health, *(pod.health for pod in pods), role_health]),
        reason=joined([secret.reason, *(pod.reason for pod in pods), role_reason]),
        facts=facts(kind="control-plane identity", client_ID=row.client_id),
    )
    identity = with_findings(identity, examination.of(row.cluster, row.identity, "registration", "role"))
    provider = GraphNode.part(NodeKind.SECRET_PROVIDER_CLASS, row.cluster, row.identity, row.secret_provider_class)
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
    assembly.roles(identity, [pod.id for pod in pods], health=role_health, reason=role_reason)
    return identity.id


def _secret(row: Row, now: datetime) -> GraphNode:
    health, reason = _expiry(row, now)
    days = row.days_left(now)
    if row.not_after is None or days is None:
        detail = "expiry not known"
    elif row.not_after <= now:
        detail = f"expired {row.not_after:%Y-%m-%d}"
    else:
        detail = f"{days} days, until {row.not_after:%Y-%m-%d}"
    return GraphNode.part(
        NodeKind.SECRET,
        row.cluster,
        row.identity,
        row.secret,
        detail=detail,
        health=health,
        reason=reason,
        expires=row.not_after,
        renew_after=row.renew_after,
        facts=facts(
            expires=rendered(row.not_after), renewal_after=rendered(row.renew_after), thumbprint=row.thumbprint
        ),
    )


def _expiry(row: Row, now: datetime) -> tuple[Health, str]:
    """The health of a certificate by its dates: from `renewAfter` on `make renew` renews it."""
    if row.not_after is None:
        return Health.UNKNOWN, ""
    if row.not_after <= now:
        return Health.ERROR, f"the certificate expired on {row.not_after:%Y-%m-%d}"
    if row.renew_after is not None and row.renew_after <= now:
        return Health.WARNING, f"the renewal is due since {row.renew_after:%Y-%m-%d}"
    return Health.OK, ""


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
    row: Row, name: str, container: str, probe: ProbeResult | None, versions: Sequence[MountedVersion]
) -> GraphNode:
    known = {version.pod: f"{version.version} ({version.state})" for version in versions}
    signs_in, problem = _sign_in(probe)
    wrong = [
        f"{version.pod}: the secret is {version.state}"
        for version in versions
        if version.state in ("old", "not mounted")
    ]
    states = sorted({version.state for version in versions}, key=list(_MOUNTED).index)
    words = [f"{len(versions)} {'pod' if len(versions) == 1 else 'pods'}, {', '.join(states)}"] if versions else []
    if signs_in is not None:
        words.append("sign-in ok" if signs_in is Health.OK else "sign-in failed")
    return GraphNode.part(
        NodeKind.POD,
        row.cluster,
        row.identity,
        name,
        detail="; ".join(words) or container,
        health=worst([*(_MOUNTED[version.state] for version in versions), signs_in]),
        reason=joined([*wrong, problem]),
        facts=(*facts(container=container), *_probe_facts(probe), *known.items()),
    )


def _sign_in(probe: ProbeResult | None) -> tuple[Health | None, str]:
    """Whether the probe of a mount has the credential and signs in with it; a refused proof call concerns the role."""
    if probe is None:
        return None, ""
    if probe.report is None:
        return Health.ERROR, probe.problem or "no report"
    if not probe.report["signIn"]["ok"]:
        return Health.ERROR, probe.report["signIn"]["error"] or "no sign-in yet"
    return Health.OK, ""


def _proof(probes: Sequence[ProbeResult]) -> tuple[Health | None, str]:
    """Whether the role grants the proof call, by the probes that signed in."""
    signed_in = [probe.report for probe in probes if probe.report is not None and probe.report["signIn"]["ok"]]
    if not signed_in:
        return (Health.UNKNOWN if probes else None), ""
    refused = [report["proof"]["error"] or "no proof call yet" for report in signed_in if not report["proof"]["ok"]]
    return (Health.ERROR if refused else Health.OK), joined(refused)


def _probe_facts(probe: ProbeResult | None) -> Facts:
    if probe is None:
        return ()
    known = facts(probe=probe.pod)
    if probe.report is not None:
        proof = probe.report["proof"]
        call = f"{proof['status']} {proof['action']}" if proof["status"] else None
        known += facts(credential_file=probe.report["credentialFile"], proof_call=call)
    return known


_NAMES: Final = {
    **{role.guid: role.name for role in vars(roles).values() if isinstance(role, roles.Role)},
    roles.MANAGED_HSM_CRYPTO_USER: "Managed HSM Crypto User",
}
_ASSIGNMENTS: Final = (resource_types.ROLE_ASSIGNMENT, resource_types.HSM_ROLE_ASSIGNMENT)
# By the last segment of the type in an ARM id, which Azure writes in more than one case.
_SCOPE_KINDS: Final = {
    "subscriptions": "subscription",
    "resourcegroups": "resource group",
    "vaults": "key vault",
    "storageaccounts": "storage account",
    "registries": "container registry",
    "userassignedidentities": "managed identity",
}


@dataclass(frozen=True)
class RoleAtScope:
    """A role at a scope: an ARM id, or the address of a managed HSM with a path in it."""

    role: str  # Azure's display name; the GUID of an unknown role
    guid: str
    scope: str


def grants(resources: Collection[StateResource]) -> dict[ResourceOwner, list[RoleAtScope]]:
    """The grants by holder, each in the state's order."""
    ownership = Ownership.of(resources)
    by_holder: dict[ResourceOwner, list[RoleAtScope]] = {}
    for resource in resources:
        if resource["type"] in _ASSIGNMENTS and not resource.get("delete"):
            by_holder.setdefault(ownership.holder(resource["urn"]), []).append(_grant(resource))
    return by_holder


def scope_name(scope: str) -> tuple[str, str]:
    """Name and kind of a scope, such as `("hc1-managed", "resource group")`."""
    if not scope.startswith("/"):
        return scope, "managed HSM"
    kind, _, name = scope.rpartition("/")
    segment = kind.rpartition("/")[2].lower()
    return name, _SCOPE_KINDS.get(segment, segment)


def _grant(resource: StateResource) -> RoleAtScope:
    written = resource.get("inputs", {})
    if resource["type"] == resource_types.HSM_ROLE_ASSIGNMENT:
        guid, scope = str(written["roleDefinition"]), f"{written['hsm']}{written['scope']}"
    else:
        guid, scope = str(written["roleDefinitionId"]).rpartition("/")[2], str(written["scope"])
    return RoleAtScope(_NAMES.get(guid, guid), guid, scope)


# Ids of what belongs to the whole stack.
VAULT: Final = node_id(NodeKind.VAULT)
KEY_VAULT_USER: Final = node_id(NodeKind.KEY_VAULT_USER)


@dataclass
class Assembly:
    """Nodes by id, and edges, each once and in order of insertion; `grants` are by holder."""

    grants: Mapping[ResourceOwner, Sequence[RoleAtScope]]
    examination: Examination
    nodes: dict[str, GraphNode] = field(default_factory=dict)
    edges: dict[GraphEdge, None] = field(default_factory=dict)

    def add(self, node: GraphNode) -> str:
        """Add a node that is not there yet; returns its id."""
        return self.nodes.setdefault(node.id, node).id

    def connect(self, source: str, relation: Relation, target: str) -> None:
        """Add an edge between two nodes by their ids."""
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

    def roles(
        self, identity: GraphNode, actors: Sequence[str], *, health: Health | None = None, reason: str = ""
    ) -> None:
        """Add the roles of an identity with their scopes; `actors` are the ids of the pods that use them."""
        assert identity.cluster is not None
        assert identity.identity is not None
        for grant in self.grants.get(ResourceOwner(identity.cluster, identity.identity), ()):
            role = self.add(
                GraphNode.part(
                    NodeKind.ROLE,
                    identity.cluster,
                    identity.identity,
                    grant.role,
                    health=health,
                    reason=reason,
                    facts=facts(role_definition=grant.guid),
                )
            )
            self.connect(identity.id, Relation.HOLDS, role)
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


def with_findings(node: GraphNode, findings: Iterable[CheckResult]) -> GraphNode:
    """The node with the doctor's evidence as its reason and the fixes among its facts; the same without findings."""
    findings = tuple(findings)
    if not findings:
        return node
    return replace(
        node,
        health=Health.ERROR,
        reason=joined([*(finding.evidence for finding in findings), node.reason]),
        facts=(*facts(fix=joined(finding.fix for finding in findings)), *node.facts),
    )
