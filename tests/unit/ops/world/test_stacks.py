"""What a stack's state says that the stack has."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from identity.naming import role_assignment_name
from ops.stack.state import StateResource
from ops.world.stacks import COMPONENTS, Contents, Stacks

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


def test_a_stack_is_found_by_its_owner_id() -> None:
    stacks = Stacks({"dev": Contents(owner="a"), "prod": Contents()})

    assert (stacks.owned_by("a"), stacks.owned_by("b")) == ("dev", None)
    assert stacks.others("dev") == {"prod": Contents()}
    assert stacks.of("gone") == Contents()
