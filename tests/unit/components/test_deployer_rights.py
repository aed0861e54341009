"""What `idstack rbac --azure` grants is what the program assigns: every role, at or above its scope, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from identity.azure.deployer_rights import (
    assigned,
    catalogue_roles,
    condition,
    deployer_grants,
    reader_grants,
    renewal_role,
)
from identity.roles import (
    AKS_CLUSTER_USER_ROLE,
    AKS_RBAC_CLUSTER_ADMIN_ROLE,
    CONTRIBUTOR_ROLE,
    KEY_VAULT_SECRETS_OFFICER_ROLE,
    RBAC_ADMINISTRATOR_ROLE,
    READER_ROLE,
    STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE,
)
from localcloud.testing.azure import Facts
from localcloud.testing.azure import parse_condition as parse
from tests.unit.components.configurations import CONFIGURATIONS
from tests.unit.components.existing_cluster import CLUSTER, USER, ExistingClusterScenario
from tests.unit.components.program import Program
from tests.unit.components.world import (
    GROUPS,
    KMS_VAULT,
    MANAGEMENT_CLUSTER,
    SECURITY_GROUP,
    SUBSCRIPTION,
    VNET,
    hosted_cluster,
    settings,
)

ASSIGNMENT = "azure-native:authorization:RoleAssignment"


@pytest.mark.parametrize("name", ["one cluster", "production's roles", "optional identities", "an issuer"])
def test_the_rights_are_those_that_the_program_uses(program: Program, name: str) -> None:
    changes = {**CONFIGURATIONS[name], "clusterSide": "hypershift"}
    made = [resource.inputs for resource in program(**changes).all(ASSIGNMENT)]
    uses = assigned(settings(**changes))

    assert {assignment["roleDefinitionId"].rpartition("/")[2] for assignment in made} == {use.role.guid for use in uses}
    assert {use.role for use in uses} <= set(catalogue_roles())
    for assignment in made:
        role = assignment["roleDefinitionId"].rpartition("/")[2]
        scopes = [use.scope for use in uses if use.role.guid == role]
        assert any(f"{assignment['scope']}/".lower().startswith(f"{scope}/".lower()) for scope in scopes), assignment
    assert {assignment["principalType"] for assignment in made} == {"ServicePrincipal"}


def test_the_deployer_of_the_example_needs_these_roles() -> None:
    granted = deployer_grants(settings(roles="builtin", managementCluster=CLUSTER))
    found = [(grant.role, grant.scope.removeprefix(GROUPS)) for grant in granted]
    vault = KMS_VAULT.removeprefix(GROUPS)

    assert found == [
        (CONTRIBUTOR_ROLE, "/identity-dev"),
        (KEY_VAULT_SECRETS_OFFICER_ROLE, "/identity-dev"),
        (RBAC_ADMINISTRATOR_ROLE, "/hc1-managed"),
        *((RBAC_ADMINISTRATOR_ROLE, scope.removeprefix(GROUPS)) for scope in (SECURITY_GROUP, VNET)),
        *((RBAC_ADMINISTRATOR_ROLE, scope) for scope in ("/dns-dev", vault)),
        (RBAC_ADMINISTRATOR_ROLE, "/identity-dev"),
        (READER_ROLE, "/aks-dev"),
        (AKS_CLUSTER_USER_ROLE, MANAGEMENT_CLUSTER.removeprefix(GROUPS)),
    ]
    [only] = {grant.condition for grant in granted if grant.condition}
    assert not _allows(only, "write", CONTRIBUTOR_ROLE.guid), "the narrower roles leave it out"
    assert _allows(only, "delete", CONTRIBUTOR_ROLE.guid), "but it may be taken away"
    assert all(_allows(only, "write", use.role.guid) for use in assigned(settings(roles="builtin")))


def test_a_role_that_an_identity_keeps_may_be_assigned_and_taken_away() -> None:
    kept = "7d8bb4e4-6fa7-4545-96cf-20fce11b705d"
    cluster = hosted_cluster(identities={"controlPlaneOperator": {"customRole": kept}})
    found = deployer_grants(settings(hostedClusters=[cluster]))

    conditions = {grant.condition for grant in found if grant.role is RBAC_ADMINISTRATOR_ROLE}
    assert [str(text).count(kept) for text in conditions] == [2]


def test_infrastructure_of_its_own_needs_the_subscription() -> None:
    found = deployer_grants(settings(**CONFIGURATIONS["infrastructure"]))

    wide = {grant.role for grant in found if grant.scope == f"/subscriptions/{SUBSCRIPTION}"}
    assert wide == {CONTRIBUTOR_ROLE, RBAC_ADMINISTRATOR_ROLE}


def _allows(text: str, action: str, role: str, principal_type: str = "ServicePrincipal") -> bool:
    attributes = {"RoleDefinitionId": role, "PrincipalType": principal_type}
    written, there = (attributes, {}) if action == "write" else ({}, attributes)
    return parse(text).holds(Facts(f"Microsoft.Authorization/roleAssignments/{action}", written, there))


@pytest.mark.parametrize("action", ["write", "delete"])
def test_the_condition_is_about_service_principals_alone(action: str) -> None:
    text = condition(catalogue_roles(), catalogue_roles())
    role = STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE.guid

    assert [
        _allows(text, action, role, principal_type) for principal_type in ("ServicePrincipal", "User", "Group")
    ] == [True, False, False]
    assert not _allows(text, action, RBAC_ADMINISTRATOR_ROLE.guid)
    assert AKS_RBAC_CLUSTER_ADMIN_ROLE in catalogue_roles()


def test_a_person_who_deploys_may_get_the_roles_that_the_stack_gives_its_deployer() -> None:
    found = deployer_grants(settings(**CONFIGURATIONS["an issuer"]), to_people=True)
    limits = {grant.scope: str(grant.condition) for grant in found if grant.role is RBAC_ADMINISTRATOR_ROLE}
    own = limits.pop(f"{GROUPS}/identity-dev")
    role = STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE.guid

    for action in ("write", "delete"):
        assert _allows(own, action, role, "User")
        assert not _allows(own, action, CONTRIBUTOR_ROLE.guid, "User")
        assert _allows(own, action, CONTRIBUTOR_ROLE.guid)
        assert not any(_allows(limit, action, role, "User") for limit in limits.values())


def test_a_preview_identity_reads_the_groups_and_assigns_nothing() -> None:
    found = reader_grants(settings(managementCluster=CLUSTER))

    assert {grant.role for grant in found} == {READER_ROLE, AKS_CLUSTER_USER_ROLE}
    groups = ("identity-dev", "hc1-managed", "hc1-nsg", "hc1-network", "dns-dev", "etcd-dev", "aks-dev")
    assert {grant.scope for grant in found if grant.role == READER_ROLE} == {f"{GROUPS}/{group}" for group in groups}


APPLIED = {
    "hostedClusters": [
        hosted_cluster(hostedCluster={"manifest": {"spec": {"serviceAccountSigningKey": {"name": "key"}}}})
    ],
    "clusterSide": "hypershift",
}
CREATED = {
    "managementCluster": {
        **CLUSTER,
        "create": {"nodePool": {"vmSize": "Standard_D4s_v5", "count": 2}, "azureRBAC": True},
    }
}


@pytest.mark.parametrize(
    "changes",
    [{}, APPLIED, {"clusterSide": "hypershift"}, CREATED],
    ids=["clusterSide stack", "a HostedCluster", "nothing on the cluster", "a cluster of its own"],
)
def test_who_previews_may_ask_for_the_kubeconfig_where_a_preview_does(
    existing_cluster: ExistingClusterScenario, changes: dict[str, Any]
) -> None:
    recorder = existing_cluster.run(options={"preview": True}, changes=changes)
    asks = USER in {invoked.function for invoked in recorder.invoked}
    scopes = [
        grant.scope
        for grant in reader_grants(settings(**{"managementCluster": CLUSTER, **changes}))
        if grant.role == AKS_CLUSTER_USER_ROLE
    ]

    assert bool(scopes) is asks
    assert all(MANAGEMENT_CLUSTER.startswith(scope) for scope in scopes)


def test_renewals_assign_no_role_and_delete_nothing() -> None:
    role = renewal_role(settings())

    assert not [action for action in role["Actions"] if "Authorization" in action or "delete" in action.lower()]
    assert "Microsoft.KeyVault/vaults/secrets/getSecret/action" not in role["DataActions"]
    assert f"{GROUPS}/identity-dev" in role["AssignableScopes"]
