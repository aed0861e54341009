"""Role assignments: named by HyperShift's formula, replaced where Azure cannot update, gone before their principal."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from identity.roles import Role
from tests.unit.components.recorder import RecordingMonitor, run

ASSIGNMENT = "azure-native:authorization:RoleAssignment"
ZEROS = "00000000-0000-0000-0000-000000000000"
GROUP = f"/subscriptions/{ZEROS}/resourceGroups/rg"
CONTRIBUTOR = Role("Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c")


def granted(scopes: Mapping[str, str], principal_id: pulumi.Input[str] = "an-object-id") -> RoleGrants:
    args = RoleGrantsArgs(
        infra_id="test-infra",
        component="cpo",
        role=CONTRIBUTOR,
        scopes=scopes,
        subscription_id=ZEROS,
        principal_id=principal_id,
    )
    return RoleGrants("cpo-roles", args)


def built(**scopes: str) -> RecordingMonitor:
    return run(lambda: granted(scopes))


def test_an_assignment_has_hypershifts_name_and_another_role_replaces_it() -> None:
    assignment = built(managed=GROUP).one(ASSIGNMENT, "cpo-roles-managed")

    assert assignment.inputs == {
        "roleAssignmentName": "bd88207c-c504-5894-ba6a-7f68c8a261b9",
        "scope": GROUP,
        "roleDefinitionId": f"/subscriptions/{ZEROS}/providers/Microsoft.Authorization/roleDefinitions/"
        "b24988ac-6180-42a0-ab88-20f7382dd24c",
        "principalId": "an-object-id",
        "principalType": "ServicePrincipal",
    }
    request = assignment.request
    assert list(request.replaceOnChanges) == ["roleDefinitionId"]
    assert (request.deleteBeforeReplaceDefined, request.deleteBeforeReplace) == (True, True)


def test_scopes_that_are_the_same_place_get_one_assignment() -> None:
    recorder = built(managed=GROUP, nsg=GROUP.upper(), vnet=f"{GROUP}-vnet")

    assert [resource.name for resource in recorder.all(ASSIGNMENT)] == ["cpo-roles-managed", "cpo-roles-vnet"]
    assert [resource.inputs["roleAssignmentName"] for resource in recorder.all(ASSIGNMENT)] == [
        "bd88207c-c504-5894-ba6a-7f68c8a261b9",
        "f9b98294-439f-5eaa-9a82-6682199ed2ac",
    ]


def test_an_assignment_depends_on_its_principal() -> None:
    def build() -> None:
        identity = managedidentity.UserAssignedIdentity("identity", resource_name_="id", resource_group_name="rg")
        granted({"managed": GROUP}, identity.principal_id)

    recorder = run(build)

    identity = recorder.one("azure-native:managedidentity:UserAssignedIdentity")
    assert identity.urn in recorder.one(ASSIGNMENT).request.dependencies
