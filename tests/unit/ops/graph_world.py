"""Stacks to draw: as many hosted clusters as wanted, each with the catalogue's identities, some with a problem."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.catalogue_rows import ControlPlaneIdentity, OptionalManagedIdentity, RoleGrant
from identity.credentials import rfc3339
from identity.naming import credentials_secret_name, role_definition_id
from identity.roles import KEY_VAULT_SECRETS_USER_ROLE
from ops.doctor.checks.check import CheckResult, CheckStatus, Stage
from ops.doctor.examination import Status
from ops.graph.build import build
from ops.graph.model import IdentityGraph
from ops.outputs.rows import TokenRow, rows
from ops.world.azure import FederatedCredential, ManagedIdentities, ManagedIdentityRow
from ops.world.cluster_state import ClusterState, MountedVersion
from ops.world.seen import HostedClusterCondition
from tests.unit.ops.states import below, grants, identity, with_parents

NOW: Final = datetime(2026, 11, 21, 17, 0, tzinfo=UTC)
SUBSCRIPTION: Final = "10ca1000-0000-4000-8000-000000000002"
GROUPS: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
VAULT_ID: Final = f"{GROUPS}/identity-prod/providers/Microsoft.KeyVault/vaults/kv-idstack-prod"
CLIENT: Final = "6f2c1e7a-0000-4000-8000-00000000aaaa"
ENABLED: Final = tuple(row for row in CONTROL_PLANE if row.enabled_by_default)


@dataclass
class GraphWorld:
    """What `sources` is made of; tests change it before they build the graph."""

    outputs: dict[str, Any] = field(default_factory=dict)
    managed: list[ManagedIdentityRow] = field(default_factory=list)
    accounts: list[TokenRow] = field(default_factory=list)
    mounts: list[MountedVersion] = field(default_factory=list)
    conditions: list[HostedClusterCondition] = field(default_factory=list)
    resources: list[Any] = field(default_factory=list)
    unread: tuple[str, ...] = ()

    def add_cluster(
        self,
        name: str,
        *,
        identities: tuple[ControlPlaneIdentity, ...] = ENABLED,
        data_plane: bool = True,
        optional: tuple[OptionalManagedIdentity, ...] = (),
        days: int = 89,
    ) -> dict[str, Any]:
        """Add a hosted cluster in which everything is well; returns its outputs."""
        described: dict[str, Any] = {
            "namespace": "clusters",
            "controlPlane": {row.field: self._credential(name, row, days) for row in identities},
            "dataPlane": {row.field: CLIENT for row in DATA_PLANE} if data_plane else {},
            "hostedClusterSpec": {"infraID": f"{name}-infra"},
        }
        for row in identities:
            self._grant(name, row.field, row.hypershift)
            for mount in row.mounts:
                pod = f"{mount.deployment}-7d9c5b6f4-x2x{len(self.mounts) % 10}l"
                self.mounts.append(MountedVersion(name, row.field, pod, "2" * 32, True, "2" * 32))
        for guest in DATA_PLANE if data_plane else ():
            self._grant(name, guest.field, guest.hypershift)
        for one in optional:
            for grant in one.grants:
                self._grant(name, one.field, grant)
            federated = tuple(
                FederatedCredential(subject.suffix, subject.subject, "exists") for subject in one.subjects
            )
            resource = f"{GROUPS}/identity-prod/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{one.name}"
            row_of = ManagedIdentityRow(name, one.field, CLIENT, resource, one.grants[0].role.name, "exists", federated)
            self.managed.append(row_of)
        self.outputs.setdefault("hostedClusters", {})[name] = described
        return described

    def sources(self) -> Status:
        """What the graph is built from."""
        name = "kv-idstack-prod"
        vault = {"keyVaultId": VAULT_ID, "keyVaultName": name, "keyVaultUri": f"https://{name}.vault.azure.net/"}
        found: Any = {**vault, "keyVaultUserClientId": CLIENT, **self.outputs}
        user = assignment(grants(None), KEY_VAULT_SECRETS_USER_ROLE.guid, VAULT_ID)
        return Status(
            stack="prod",
            at=NOW,
            outputs=found,
            rows=rows(found, None),
            accounts=self.accounts,
            resources=[*user, *self.resources],
            results=examined(found),
            cluster=ClusterState(tuple(self.conditions), tuple(self.mounts), self.unread),
            managed=ManagedIdentities(tuple(self.managed)),
        )

    def graph(self) -> IdentityGraph:
        """The graph of it."""
        return build(self.sources())

    def _credential(self, cluster: str, row: ControlPlaneIdentity, days: int) -> dict[str, Any]:
        expires = NOW + timedelta(days=days, hours=23)
        return {
            "clientID": CLIENT,
            "credentialsSecretName": credentials_secret_name(row.secret_stem, cluster),
            "objectEncoding": "utf-8",
            "secretProviderClass": row.secret_provider_class,
            "notAfter": rfc3339.render(expires),
            "renewAfter": rfc3339.render(expires - timedelta(days=45)),
            "thumbprint": "9F3A6C1B0D2E4F5A6B7C8D9E0F1A2B3C4D5E6F70",
        }

    def _grant(self, cluster: str, field: str, grant: RoleGrant) -> None:
        for scope in grant.scopes:
            group = f"{GROUPS}/{cluster}-{scope.name.lower().replace('_', '-')}"
            self.resources += assignment(grants(identity(cluster, field)), grant.role.guid, group)


def one_cluster() -> GraphWorld:
    """A stack with one hosted cluster and every optional managed identity."""
    world = GraphWorld()
    world.add_cluster("hc1", optional=OPTIONAL)
    return world


def small_cluster() -> GraphWorld:
    """Two identities: one in two pods, one whose renewal is due and whose pod has an old version mounted."""
    world = GraphWorld()
    two = tuple(row for row in CONTROL_PLANE if row.setting or row.secret_stem == "ciro")
    described = world.add_cluster("hc1", identities=two, data_plane=False)
    due = described["controlPlane"][two[0].field]
    due["notAfter"], due["renewAfter"] = "2026-12-01T00:00:00Z", "2026-11-20T00:00:00Z"
    old = world.mounts[0]
    world.mounts[0] = MountedVersion(old.cluster, old.identity, old.pod, "1" * 32, True, old.current)
    return world


def examined(outputs: Any) -> tuple[CheckResult, ...]:
    """Every secret was read, and is as the stack delivered it."""
    return tuple(
        CheckResult(cluster=name, identity=field, stage=Stage.VAULT, check="secret", status=CheckStatus.OK)
        for name, described in outputs.get("hostedClusters", {}).items()
        for field in described["controlPlane"]
    )


def with_results(sources: Status, *results: CheckResult) -> Status:
    """The doctor finds this instead."""
    return replace(sources, results=results)


def broken_secret() -> IdentityGraph:
    """One identity whose secret is gone, with the doctor's evidence and fix."""
    world = GraphWorld()
    world.add_cluster("hc1", identities=ENABLED[:1], data_plane=False)
    finding = CheckResult(
        cluster="hc1",
        identity=ENABLED[0].field,
        stage=Stage.VAULT,
        check="secret",
        status=CheckStatus.BROKEN,
        evidence="there is no secret x",
        fix="if it was deleted, `az keyvault secret recover --name x`, then try again",
    )
    return build(with_results(world.sources(), finding))


@cache
def fifty_clusters() -> IdentityGraph:
    """The graph of fifty hosted clusters; in some of them something is wrong."""
    world = GraphWorld(unread=("the conditions of cluster-49: the API server refuses it",))
    for number in range(50):
        name = f"cluster-{number:02}"
        described = world.add_cluster(name, days=-2 if number == 17 else 89 - number // 5)
        if number == 31:
            due = described["controlPlane"][ENABLED[4].field]
            due["notAfter"], due["renewAfter"] = "2026-12-01T00:00:00Z", "2026-11-20T00:00:00Z"
        if number == 8:
            world.conditions.append(
                HostedClusterCondition(name, "ValidAzureKMSConfig", "False", "AzureError", "encrypt failed: 403")
            )
    return world.graph()


def assignment(roles: Any, guid: str, scope: str) -> list[Any]:
    """A role assignment in the state, below a `RoleGrants`, and what that is below."""
    inputs = {"scope": scope, "roleDefinitionId": role_definition_id(SUBSCRIPTION, guid)}
    name = f"{roles['urn'].rpartition('::')[2]}-{scope.rpartition('/')[2]}"
    return with_parents(below(roles, resource_types.ROLE_ASSIGNMENT, name, id="x", inputs=inputs))
