"""The graph of a stack: who is connected with whom, and how each one is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, OPTIONAL
from identity.naming import credentials_secret_name, role_definition_id
from identity.roles import CONTRIBUTOR_ROLE, KEY_VAULT_SECRETS_USER_ROLE, MANAGED_HSM_CRYPTO_USER
from ops.doctor.checks.check import CheckResult, CheckStatus, Stage
from ops.graph.build import RoleAtScope, build, grants
from ops.graph.model import GraphNode, Health, IdentityGraph, NodeKind, Relation, scope_name
from ops.outputs.rows import TokenProbe, TokenRow
from ops.world.azure import FederatedCredential, ManagedIdentityRow
from ops.world.cluster_state import MountedVersion, ProbeResult
from ops.world.ownership import ResourceOwner
from ops.world.seen import HostedClusterCondition
from tests.unit.ops.graph_world import (
    CLIENT,
    ENABLED,
    NOW,
    VAULT_ID,
    GraphWorld,
    assignment,
    fifty_clusters,
    small_cluster,
    with_results,
)
from tests.unit.ops.stacks import answered, refused, report
from tests.unit.ops.states import below, identity, with_parents
from tests.unit.ops.states import grants as role_grants

[TWO_MOUNTS] = [row for row in ENABLED if len(row.mounts) == 2]
ROW = next(row for row in ENABLED if len(row.mounts) == 1)


def one_identity(**changes: Any) -> GraphWorld:
    """A stack with one identity, its output changed."""
    world = GraphWorld()
    described = world.add_cluster("hc1", identities=(ROW,), data_plane=False)
    described["controlPlane"][ROW.field].update(changes)
    return world


def the(kind: NodeKind, graph: IdentityGraph) -> GraphNode:
    [found] = graph.of_kind(kind)
    return found


def by_id(graph: IdentityGraph) -> dict[str, GraphNode]:
    return {node.id: node for node in graph.nodes}


def behind(graph: IdentityGraph, node: GraphNode, relation: Relation) -> list[GraphNode]:
    edges = [edge for edge in graph.edges if edge.source == node.id and edge.relation is relation]
    return [by_id(graph)[edge.target] for edge in edges]


def probed(world: GraphWorld, *results: ProbeResult, found: CheckResult | None = None) -> IdentityGraph:
    """The graph with these probes of each identity, and one more result of the doctor."""
    sources = world.sources()
    examined = with_results(sources, *sources.results, *([found] if found else ()))
    return build(replace(examined, rows=[replace(row, probes=results) for row in sources.rows]))


def test_a_reader_with_a_role_on_each_secret_holds_it_there() -> None:
    world = one_identity()
    scope = f"{VAULT_ID}/secrets/{credentials_secret_name(ROW.secret_stem, 'hc1')}"
    reader = role_grants(identity("hc1", ROW.field), "reader")
    world.resources += assignment(reader, KEY_VAULT_SECRETS_USER_ROLE.guid, scope)

    graph = world.graph()

    user, secret = the(NodeKind.KEY_VAULT_USER, graph), the(NodeKind.SECRET, graph)
    [role] = behind(graph, user, Relation.HOLDS)
    assert secret in behind(graph, role, Relation.AT)


def test_what_was_not_read_or_checked_is_not_known_to_be_well() -> None:
    graph = build(with_results(one_identity().sources()))

    kinds = (NodeKind.SECRET, NodeKind.IDENTITY, NodeKind.HOSTED_CLUSTER)
    assert {the(kind, graph).health for kind in kinds} == {Health.UNKNOWN}
    place: Any = {"cluster": "hc1", "identity": ROW.field, "stage": Stage.SIGN_IN, "check": "registration"}
    unmade = CheckResult(**place, status=CheckStatus.NOT_CHECKED, evidence="403: it takes Application.Read.All")
    graph = probed(one_identity(), found=unmade)
    identity = the(NodeKind.IDENTITY, graph)
    assert (identity.health, identity.reason) == (Health.UNKNOWN, unmade.evidence)
    assert the(NodeKind.HOSTED_CLUSTER, graph).health is Health.UNKNOWN


def test_a_chain_leads_from_the_hosted_cluster_to_the_scopes() -> None:
    graph = one_identity().graph()

    cluster = the(NodeKind.HOSTED_CLUSTER, graph)
    [used] = behind(graph, cluster, Relation.USES)
    [secret] = behind(graph, used, Relation.STORED_IN)
    [provider] = behind(graph, secret, Relation.FETCHED_BY)
    [pod] = behind(graph, provider, Relation.MOUNTED_IN)
    [role] = behind(graph, pod, Relation.ACTS_WITH)
    scopes = behind(graph, role, Relation.AT)

    assert behind(graph, used, Relation.HOLDS) == [role]
    assert (used.name, provider.name) == (ROW.field, ROW.secret_provider_class)
    assert (pod.name, role.name) == (ROW.mounts[0].deployment, ROW.hypershift.role.name)
    assert len(scopes) == len(ROW.hypershift.scopes)

    [vault] = behind(graph, secret, Relation.STORED_IN)
    [user] = behind(graph, provider, Relation.FETCHES_AS)
    [own] = behind(graph, user, Relation.HOLDS)
    assert (vault.kind, user.kind) == (NodeKind.VAULT, NodeKind.KEY_VAULT_USER)
    assert behind(graph, own, Relation.AT) == [vault]
    world = one_identity()
    world.resources = assignment(role_grants(identity("hc2", ROW.field)), ROW.hypershift.role.guid, VAULT_ID)
    assert [role.cluster for role in world.graph().of_kind(NodeKind.ROLE)] == [None], "of an unknown cluster"


@pytest.mark.parametrize(
    ("changes", "health", "reason"),
    [
        ({}, Health.OK, ""),
        ({"notAfter": "2026-11-21T17:00:00Z"}, Health.ERROR, "the certificate expired on 2026-11-21"),
        ({"renewAfter": "2026-11-21T17:00:00Z"}, Health.WARNING, "the renewal is due since 2026-11-21"),
        ({"notAfter": None, "renewAfter": None}, Health.UNKNOWN, ""),
    ],
)
def test_the_health_of_a_secret_is_its_certificates(changes: Any, health: Health, reason: str) -> None:
    secret = the(NodeKind.SECRET, one_identity(**changes).graph())

    assert (secret.health, secret.reason) == (health, reason)


@pytest.mark.parametrize(
    ("version", "is_mounted", "current", "health"),
    [
        ("1", True, "1", Health.OK),
        ("1", True, "2", Health.WARNING),
        ("1", False, "1", Health.ERROR),
        ("1", True, None, Health.UNKNOWN),
    ],
)
def test_the_health_of_a_pod_is_that_of_its_mount(
    version: str, is_mounted: bool, current: str | None, health: Health
) -> None:
    world = one_identity()
    pod = f"{ROW.mounts[0].deployment}-0"
    world.mounts = [MountedVersion("hc1", ROW.field, pod, version, is_mounted, current)]

    found = the(NodeKind.POD, world.graph())

    assert found.health is health
    assert dict(found.facts)[pod].startswith(version)


def test_the_worst_of_its_chain_is_an_identitys_health_and_its_clusters() -> None:
    world = one_identity(renewAfter="2026-11-01T00:00:00Z")
    world.mounts = [MountedVersion("hc1", ROW.field, f"{ROW.mounts[0].deployment}-0", "1", False, "1")]
    graph = world.graph()

    identity, cluster = the(NodeKind.IDENTITY, graph), the(NodeKind.HOSTED_CLUSTER, graph)

    assert (identity.health, cluster.health) == (Health.ERROR, Health.ERROR)
    assert identity.reason == (f"the renewal is due since 2026-11-01; {ROW.mounts[0].deployment}-0: nothing is mounted")
    assert cluster.reason == f"{ROW.field}: {identity.reason}"


def test_a_refused_sign_in_is_the_pods_and_a_refused_proof_call_the_roles() -> None:
    forbidden = report(ready=False, proof={"ok": False, "status": 403, "action": "x/read", "error": "403 Forbidden"})
    no_sign_in = probed(one_identity(), answered("probe-0", refused("AADSTS700027")))
    no_role = probed(one_identity(), answered("probe-0", forbidden))
    [role] = [node for node in no_role.of_kind(NodeKind.ROLE) if node.cluster]

    pod = the(NodeKind.POD, no_sign_in)
    assert (pod.health, pod.reason) == (Health.ERROR, "AADSTS700027")
    assert [node.health for node in no_sign_in.of_kind(NodeKind.ROLE) if node.cluster] == [Health.UNKNOWN]
    assert (the(NodeKind.POD, no_role).health, role.health, role.reason) == (Health.OK, Health.ERROR, "403 Forbidden")


def test_a_pod_belongs_to_the_mount_whose_deployment_or_probe_it_is_of() -> None:
    world = GraphWorld()
    world.add_cluster("hc1", identities=(TWO_MOUNTS,), data_plane=False)
    first, second = (TWO_MOUNTS.probe_name(mount) for mount in TWO_MOUNTS.mounts)
    pods = [f"{first}-5d4f-x", f"{second}-5d4f-x", "somebody-else-0"]
    world.mounts = [MountedVersion("hc1", TWO_MOUNTS.field, pod, "1", True, "1") for pod in pods]

    found = {
        node.name: [name for name, _ in node.facts if name in pods] for node in world.graph().of_kind(NodeKind.POD)
    }

    deployments = [mount.deployment for mount in TWO_MOUNTS.mounts]
    assert found == {deployments[0]: pods[:1], deployments[1]: pods[1:2], "somebody-else-0": pods[2:]}


@pytest.mark.parametrize(
    ("type_", "status", "health"),
    [
        ("Available", "False", Health.ERROR),
        ("Progressing", "True", Health.WARNING),
        ("EtcdAvailable", "Unknown", Health.WARNING),
        ("Available", "True", Health.OK),
    ],
)
def test_conditions_count_for_the_hosted_cluster(type_: str, status: str, health: Health) -> None:
    world = one_identity()
    world.conditions = [HostedClusterCondition("hc1", type_, status, "Reason", "message")]

    assert the(NodeKind.HOSTED_CLUSTER, world.graph()).health is health


def test_a_managed_identity_that_azure_does_not_have_is_broken() -> None:
    world = GraphWorld()
    world.add_cluster("hc1", identities=(), data_plane=False, optional=OPTIONAL)
    world.managed[0] = replace(world.managed[0], state="missing")
    broken, *others = world.graph().identities("hc1")

    assert (broken.health, broken.reason) == (Health.ERROR, "the managed identity is missing in Azure")
    assert {node.health for node in others} == {Health.OK}


def test_a_service_account_is_as_its_probe_says() -> None:
    [row] = [row for row in CONTROL_PLANE if row.field == "disk" and row.workload]
    assert row.workload is not None
    world, (first, *others) = GraphWorld(), row.workload.subjects
    world.add_cluster("hc2", identities=(), data_plane=False)
    trusted = tuple(FederatedCredential(subject.suffix, subject.subject, "exists") for subject in row.workload.subjects)
    world.managed.append(ManagedIdentityRow("hc2", "disk", CLIENT, f"{VAULT_ID}/disk", "role", "exists", trusted))
    probe = TokenProbe("hc2", "clusters-hc2", row, CLIENT, first.subject, row.workload.token, "probe-disk")
    world.accounts.append(TokenRow(probe, answered("probe-disk", refused("AADSTS700213: no match"))))

    accounts = [node for node in world.graph().nodes if node.kind is NodeKind.SERVICE_ACCOUNT]

    assert [(node.health, node.reason) for node in accounts] == [
        (Health.ERROR, "AADSTS700213: no match"),
        *((Health.OK, "") for _ in others),
    ]
    [cluster] = world.graph().clusters
    assert cluster.health is Health.ERROR


def test_a_cluster_alone_keeps_what_it_shares_and_nothing_of_others() -> None:
    graph = fifty_clusters()
    names = by_id(graph).keys()
    assert len(names) == len(graph.nodes)
    assert len(set(graph.edges)) == len(graph.edges)
    assert all({edge.source, edge.target} <= names for edge in graph.edges)

    one = graph.only("cluster-03")

    assert {node.cluster for node in one.nodes} == {"cluster-03", None}
    assert {NodeKind.VAULT, NodeKind.KEY_VAULT_USER, NodeKind.SCOPE} <= {node.kind for node in one.nodes}
    assert all({edge.source, edge.target} <= by_id(one).keys() for edge in one.edges)
    assert all("cluster-03" in node.name for node in one.of_kind(NodeKind.SCOPE))
    empty, small = GraphWorld().graph(), small_cluster().graph()
    alone = {NodeKind.VAULT, NodeKind.KEY_VAULT_USER, NodeKind.ROLE}
    assert (empty.clusters, {node.kind for node in empty.nodes}) == ([], alone)
    expiry = small.expiry("hc1")
    assert expiry is not None
    assert ((expiry - NOW).days, small.expiry("hc2")) == (9, None), "the first certificate to expire"


def test_every_identity_of_the_catalogue_is_in_the_graph() -> None:
    world = GraphWorld(unread=("the management cluster: no access",))
    world.add_cluster("hc1", identities=CONTROL_PLANE, optional=OPTIONAL)
    graph = world.graph()
    fields = [node.name for node in graph.identities("hc1")]

    assert fields[: len(CONTROL_PLANE)] == [row.field for row in CONTROL_PLANE]
    assert set(fields) >= {row.field for row in OPTIONAL}
    assert all(behind(graph, node, Relation.HOLDS) for node in graph.identities("hc1"))
    assert graph.unread == ("the management cluster: no access",)


GROUP = "/subscriptions/s/resourceGroups/hc1-managed"
INGRESS = ResourceOwner("hc1", "ingress")
INGRESS_ROLES = role_grants(identity("hc1", "ingress"))


def assignments(roles: Any = INGRESS_ROLES, guid: str = CONTRIBUTOR_ROLE.guid, **changes: Any) -> list[Any]:
    """A role assignments in the state, below a `RoleGrants`, and what that is below."""
    inputs = {"scope": GROUP, "roleDefinitionId": role_definition_id("s", guid)}
    return with_parents(below(roles, resource_types.ROLE_ASSIGNMENT, "a-name", id="x", inputs=inputs, **changes))


_HSM = {"hsm": "my-hsm", "scope": "/keys/etcd", "roleDefinition": MANAGED_HSM_CRYPTO_USER}
_HSM_ROLE = below(identity("hc1", "kms"), resource_types.HSM_ROLE_ASSIGNMENT, "a-name", id="x", inputs=_HSM)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (assignments(), {INGRESS: [RoleAtScope("Contributor", CONTRIBUTOR_ROLE.guid, GROUP)]}),
        (assignments(guid="another"), {INGRESS: [RoleAtScope("another", "another", GROUP)]}),
        (assignments(delete=True), {}),
        (
            with_parents(_HSM_ROLE),
            {
                ResourceOwner("hc1", "kms"): [
                    RoleAtScope("Managed HSM Crypto User", MANAGED_HSM_CRYPTO_USER, "my-hsm/keys/etcd")
                ]
            },
        ),
    ],
    ids=["known", "unknown", "waits for its deletion", "of a managed HSM"],
)
def test_a_grant_is_of_the_identity_whose_component_made_it(
    resources: list[Any], expected: dict[ResourceOwner, list[RoleAtScope]]
) -> None:
    assert grants(resources) == expected


@pytest.mark.parametrize(
    ("scope", "name", "kind"),
    [
        (GROUP, "hc1-managed", "resource group"),
        (f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv-etcd", "kv-etcd", "key vault"),
        (f"{GROUP}/providers/Microsoft.Storage/storageAccounts/backups", "backups", "storage account"),
        (f"{GROUP}/providers/Microsoft.Network/dnsZones/example.com", "example.com", "dnszones"),
        ("/subscriptions/s", "s", "subscription"),
        ("my-hsm/keys/etcd", "my-hsm/keys/etcd", "managed HSM"),
    ],
)
def test_a_scope_has_a_name_and_a_kind(scope: str, name: str, kind: str) -> None:
    assert scope_name(scope) == (name, kind)


@pytest.mark.parametrize(
    ("check", "evidence", "kind"),
    [
        ("secret", "it is disabled", NodeKind.SECRET),
        ("class", "another secret", NodeKind.SECRET_PROVIDER_CLASS),
        ("mount", f"{ROW.mounts[0].deployment}-0 has an old version", NodeKind.POD),
        ("mount", "nothing is mounted in a pod", NodeKind.SECRET_PROVIDER_CLASS),
        ("pod", f"{ROW.mounts[0].deployment}-0 does not run", NodeKind.POD),
        ("role", "it is gone", NodeKind.ROLE),
    ],
)
def test_a_finding_and_its_fix_are_on_its_node_the_identity_and_the_cluster(
    check: str, evidence: str, kind: NodeKind
) -> None:
    place: Any = {"cluster": "hc1", "identity": ROW.field, "stage": Stage.CLASS, "check": check}
    found = CheckResult(**place, status=CheckStatus.BROKEN, evidence=evidence, fix="`try`")
    world = one_identity()
    world.mounts = [MountedVersion("hc1", ROW.field, f"{ROW.mounts[0].deployment}-0", "1", True, "1")]

    graph = probed(world, found=found)

    broken = {node.kind: node for node in graph.nodes if node.health is Health.ERROR}
    assert set(broken) == {kind, NodeKind.IDENTITY, NodeKind.HOSTED_CLUSTER}
    assert {dict(node.facts)["fix"] for node in broken.values()} == {"`try`"}
    reasons = {node.reason for node in broken.values()}
    assert reasons == {evidence, f"{ROW.field}: {evidence}"}
    of_every_probe = CheckResult(**{**place, "check": "pod"}, status=CheckStatus.BROKEN, evidence="none", fix="`start`")
    silent = probed(one_identity(), ProbeResult("probe-0", None, "silent"), found=of_every_probe)
    assert dict(the(NodeKind.POD, silent).facts)["fix"] == "`start`"


def test_what_is_broken_without_a_finding_names_the_doctor() -> None:
    graph = probed(one_identity(), answered("probe-0", refused("AADSTS700027")))

    fix = f"`.venv/bin/idstack doctor --stack prod --identity hc1/{ROW.field}`"
    broken = [node for node in graph.nodes if node.health is Health.ERROR]
    assert {(node.kind, dict(node.facts)["fix"]) for node in broken} == {
        (kind, fix) for kind in (NodeKind.POD, NodeKind.IDENTITY, NodeKind.HOSTED_CLUSTER)
    }
