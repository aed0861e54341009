"""Whose a resource is, by its parents, and what a stack's state says that it has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, OPTIONAL
from identity.naming import role_assignment_name
from ops.stack.state import StateResource
from ops.world.ownership import KEY_VAULT_USER, Ownership, ResourceOwner, by_owner
from ops.world.stacks import COMPONENTS, Contents, Stacks
from tests.unit.ops.states import below, cluster, cluster_side, grants, identity, with_parents, workload

ROLE = resource_types.ROLE_ASSIGNMENT
[ATTACHED] = [row for row in OPTIONAL if row.attached_by]
KMS = ResourceOwner("hc1", "kms")


def owner(resource: Any) -> ResourceOwner:
    return Ownership.of(with_parents(resource)).owner(resource["urn"])


@given(name=st.sampled_from(["hc1", "hc1-kms", "hc"]), row=st.sampled_from(CONTROL_PLANE))
def test_an_identity_is_its_clusters_whatever_the_clusters_are_called(name: str, row: Any) -> None:
    roles = grants(identity(name, row.field))

    assert owner(below(roles, ROLE, "a-name", id="x")) == ResourceOwner(name, row.field)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (below(None, resource_types.VAULT, "vault-vault", id="x"), ResourceOwner()),
        (grants(None), ResourceOwner()),
        (cluster(), ResourceOwner("hc1")),
        (below(cluster(), resource_types.INFRASTRUCTURE, "hc1-kms"), ResourceOwner("hc1")),
        (below(cluster_side(), resource_types.NAMESPACE, "hc1-cluster-side-namespace"), ResourceOwner("hc1")),
        (below(cluster_side(), "class", "hc1-cluster-side-disk-class"), ResourceOwner("hc1", "disk")),
        (below(cluster_side(), "probe", "hc1-cluster-side-probe-kms-2"), KMS),
        (below(cluster_side(), "user", "hc1-cluster-side-workload-kms"), ResourceOwner("hc1")),
        (identity("hc1", "diskMSIClientID"), ResourceOwner("hc1", "diskMSIClientID")),
        (identity("hc1", "acrPull"), ResourceOwner("hc1", "acrPull")),
        (workload("hc1", "kms"), KMS),
    ],
    ids=lambda value: value["urn"].rpartition("::")[2] if isinstance(value, dict) else None,
)
def test_an_owner_is_the_component_that_a_resource_is_below(resource: Any, expected: ResourceOwner) -> None:
    assert owner(resource) == expected


@pytest.mark.parametrize(
    ("roles", "holder"),
    [
        (grants(identity("hc1", "kms")), KMS),
        (grants(identity("hc1", "kms"), "reader"), KEY_VAULT_USER),
        (grants(None), KEY_VAULT_USER),
        (grants(identity("hc1", ATTACHED.field), "attacher-roles"), ResourceOwner("hc1", ATTACHED.attached_by or "")),
    ],
)
def test_a_role_is_held_by_whose_principal_it_is_for(roles: Any, holder: ResourceOwner) -> None:
    role = below(roles, ROLE, "a-name", id="x")

    assert Ownership.of(with_parents(role)).holder(role["urn"]) == holder


def test_what_waits_for_its_deletion_has_no_owner() -> None:
    first, second = (below(identity("hc1", "kms"), ROLE, name, id=name) for name in ("one", "two"))
    first["delete"] = True

    assert by_owner(with_parents(first, second), ROLE) == {KMS: [second]}
    assert Ownership({}).owner(second["urn"]) == ResourceOwner(), "nor has one without known parents"


SCOPE = "/subscriptions/s/resourceGroups/hc1-managed"
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)


def resource(type_token: str, id: str, **more: Any) -> StateResource:
    return {"urn": f"urn:pulumi:dev::idstack::{type_token}::{id}", "type": type_token, "custom": True, "id": id, **more}  # type: ignore[typeddict-item]


def assignment(name: str, scope: str = SCOPE) -> StateResource:
    inputs = {"scope": scope, "roleAssignmentName": name}
    full_id = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
    return resource("azure-native:authorization:RoleAssignment", full_id, inputs=inputs)


def test_it_knows_its_owner_its_things_and_its_principals() -> None:
    identity = "/subscriptions/S/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/disk"
    contents = Contents.of(
        [
            resource("idstack:index:StackOwner", "owner-1"),
            resource("azuread:index/application:Application", "/applications/A", outputs={"objectId": "A"}),
            resource(
                "azuread:index/servicePrincipal:ServicePrincipal", "/servicePrincipals/P", outputs={"objectId": "P"}
            ),
            resource("azure-native:managedidentity:UserAssignedIdentity", identity, outputs={"principalId": "M"}),
            resource("kubernetes:core/v1:Namespace", "clusters-hc1"),
        ]
    )

    assert contents.owner == "owner-1"
    stacks = Stacks({"dev": contents, "prod": Contents()})
    assert (stacks.owned_by("owner-1"), stacks.owned_by("b"), stacks.of("gone")) == ("dev", None, Contents())
    assert stacks.others("dev") == {"prod": Contents()}
    assert contents.ids == {"/applications/a", "/serviceprincipals/p", identity.lower()}
    assert contents.principals == {"p", "m"}


@given(infra_id=NAMES, other=NAMES, component=st.sampled_from(COMPONENTS), scope=st.sampled_from([SCOPE, f"{SCOPE}/x"]))
def test_an_infra_id_is_known_by_any_role_of_its_cluster(infra_id: str, other: str, component: str, scope: str) -> None:
    contents = Contents.of([assignment(role_assignment_name(infra_id, component, scope), scope)])

    assert contents.has_infra_id(infra_id)
    assert contents.has_infra_id(other) == (infra_id == other)


def test_a_cluster_that_was_moved_away_is_in_the_outputs_alone() -> None:
    cluster = {"hostedClusterSpec": {"infraID": "hc1-infra"}}
    stack = resource("pulumi:pulumi:Stack", "", outputs={"hostedClusters": {"hc1": cluster}})

    assert Contents.of([stack]).infra_ids == {"hc1-infra"}
    assert not Contents.of([stack]).has_infra_id("hc1-infra")
