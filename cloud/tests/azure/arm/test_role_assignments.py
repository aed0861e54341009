"""Role assignments behave as Azure's: which are equal, what cannot change, when the principal is looked up."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.azure.shared.faults import NO_DELAYS
from localcloud.core import clock
from localcloud.testing.arm import GROUP, ONE, READER, SUBSCRIPTION, TWO, VAULT, ArmWorld, error, vault_body

# Custom roles: what they grant, where they may be assigned, and who may write them.

ROLES = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions"
READ = {"actions": ["*/read"], "notActions": ["Microsoft.KeyVault/*"], "dataActions": []}


def write(
    world: ArmWorld, roles: str = ROLES, guid: str = ONE, /, caller: Any = None, **properties: Any
) -> httpx.Response:
    whole = {"roleName": "mine", "permissions": [READ], "assignableScopes": [GROUP], **properties}
    return world.call("PUT", f"{roles}/{guid}", {"properties": whole}, caller=caller)


def names(world: ArmWorld, scope: str, **query: str) -> list[str]:
    found = world.call("GET", f"{scope}/providers/Microsoft.Authorization/roleDefinitions", **query).json()["value"]
    return [definition["properties"]["roleName"] for definition in found]


def test_a_custom_role_is_written_read_changed_and_deleted(world: ArmWorld) -> None:
    created = write(world)
    changed = write(world, description="of mine")

    role = world.call("GET", f"{ROLES}/{ONE}").json()
    assert [answer.status_code for answer in (created, changed)] == [201, 201]
    assert (role["id"], role["name"]) == (f"{ROLES}/{ONE}", ONE)
    assert role["properties"]["type"] == "CustomRole"
    assert role["properties"]["description"] == "of mine"
    assert role["properties"]["permissions"] == [{**READ, "notDataActions": []}]
    assert role["properties"]["createdOn"] == created.json()["properties"]["createdOn"]
    assert world.call("DELETE", f"{ROLES}/{ONE}").status_code == 200
    assert world.call("DELETE", f"{ROLES}/{ONE}").status_code == 204
    assert error(world.call("GET", f"{ROLES}/{ONE}"))[:2] == (404, "RoleDefinitionDoesNotExist")


def test_roles_are_listed_by_name_or_by_type(world: ArmWorld) -> None:
    write(world)

    assert names(world, GROUP, **{"$filter": "type eq 'CustomRole'"}) == ["mine"]
    assert names(world, GROUP, **{"$filter": "roleName eq 'Reader'"}) == ["Reader"]
    assert names(world, GROUP, **{"$filter": "roleName eq 'mine'"}) == ["mine"]
    assert "mine" not in names(world, GROUP, **{"$filter": "type eq 'BuiltInRole'"})


def test_a_custom_role_grants_its_actions_and_not_those_it_excludes(world: ArmWorld) -> None:
    principal = world.principal()
    world.create_vault()
    write(world)

    assert world.assign(TWO, principal.object_id, ONE, GROUP).status_code == 201

    assert world.call("GET", GROUP, caller=principal).status_code == 200
    assert error(world.call("GET", VAULT, caller=principal))[:2] == (403, "AuthorizationFailed")
    assert error(world.call("PUT", VAULT, vault_body(), caller=principal))[:2] == (403, "AuthorizationFailed")


def test_data_actions_of_a_custom_role_reach_the_vault(world: ArmWorld) -> None:
    principal = world.principal()
    world.create_vault()
    world.vault("PUT", "/secrets/one", {"value": "v"})
    metadata = ["Microsoft.KeyVault/vaults/secrets/readMetadata/action"]
    write(world, permissions=[{"actions": ["*/read"], "dataActions": metadata}])
    world.assign(TWO, principal.object_id, ONE, GROUP)

    assert world.vault("GET", "/secrets", caller=principal).status_code == 200
    assert world.vault("GET", "/secrets/one", caller=principal).status_code == 403


@pytest.mark.parametrize(
    ("scope", "status"),
    [(GROUP, 201), (VAULT, 201), (SUBSCRIPTION, 404), (f"{SUBSCRIPTION}/resourceGroups/other", 404)],
)
def test_a_custom_role_is_assigned_at_its_scopes_and_below(world: ArmWorld, scope: str, status: int) -> None:
    world.group("other")
    world.create_vault()
    write(world)

    assert world.assign(TWO, world.principal().object_id, ONE, scope).status_code == status
    assert ("mine" in names(world, scope)) == (status == 201)


def test_writing_a_role_takes_the_right_at_every_assignable_scope(world: ArmWorld) -> None:
    other = world.group("other")
    somebody = world.principal(("User Access Administrator", GROUP))
    of_the_group = ROLES.replace(SUBSCRIPTION, GROUP)

    refused = write(world, of_the_group, caller=somebody, assignableScopes=[GROUP, other])

    assert error(refused)[:2] == (403, "AuthorizationFailed")
    assert f"over scope '{other}'" in error(refused)[2]
    assert write(world, of_the_group, caller=somebody).status_code == 201
    assert world.call("GET", f"{ROLES}/{ONE}").status_code == 200, "a role is the tenant's, wherever it was written"


def test_two_custom_roles_have_two_names(world: ArmWorld) -> None:
    write(world)

    assert error(write(world, ROLES, TWO))[:2] == (409, "RoleDefinitionWithSameNameExists")
    assert write(world, ROLES, TWO, roleName="another").status_code == 201


def test_a_built_in_role_stays_as_it_is(world: ArmWorld) -> None:
    assert error(write(world, ROLES, READER))[:2] == (501, "NotEmulated")


CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"


def path(name: str, scope: str = GROUP) -> str:
    return f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"


def test_an_assignment_is_created_read_and_deleted(world: ArmWorld) -> None:
    principal = world.principal().object_id
    created = world.assign(ONE, principal)
    read = world.call("GET", path(ONE))
    deleted = world.call("DELETE", path(ONE))
    assert [answer.status_code for answer in (created, read, deleted)] == [201, 200, 200]
    assert created.json() == read.json() == deleted.json()
    properties = read.json()["properties"]
    assert (properties["principalId"], properties["scope"]) == (principal, GROUP)
    assert properties["roleDefinitionId"] == f"{ROLES}/{READER}"
    assert world.call("DELETE", path(ONE)).status_code == 204
    assert error(world.call("GET", path(ONE)))[:2] == (404, "RoleAssignmentNotFound")


def test_writing_an_assignment_again_changes_nothing_but_its_description(world: ArmWorld) -> None:
    principal = world.principal().object_id
    first = world.assign(ONE, principal)
    second = world.assign(ONE, principal, description="why")
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["properties"]["description"] == "why"


@pytest.mark.parametrize("change", ["principal", "role", "scope"])
def test_an_assignments_principal_and_role_cannot_change(world: ArmWorld, change: str) -> None:
    principal = world.principal().object_id
    world.assign(ONE, principal)
    world.group("other")
    answer = world.assign(
        ONE,
        world.principal().object_id if change == "principal" else principal,
        CONTRIBUTOR if change == "role" else READER,
        f"{SUBSCRIPTION}/resourceGroups/other" if change == "scope" else GROUP,
    )
    assert error(answer) == (
        400,
        "RoleAssignmentUpdateNotPermitted",
        "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
    )


def test_a_new_principal_is_not_found_unless_its_type_is_sent(tmp_path: Path) -> None:
    world = ArmWorld(tmp_path, replace(NO_DELAYS, principal_delay=60))
    principal = world.principal().object_id
    early = world.assign(ONE, principal, principalType=None)
    with_type = world.assign(TWO, principal, role=CONTRIBUTOR)
    with clock.moved_ahead(timedelta(seconds=61)):
        late = world.assign(ONE, principal, principalType=None)
    assert error(early)[:2] == (400, "PrincipalNotFound")
    assert error(early)[2].startswith(
        f"Principal {principal.replace('-', '')} does not exist in the directory {world.cloud.tenant_id}. "
    )
    assert (with_type.status_code, late.status_code) == (201, 201)
    assert late.json()["properties"]["principalType"] == "ServicePrincipal"


def test_an_assignment_outlives_its_principal_and_keeps_its_name(world: ArmWorld) -> None:
    gone = world.principal()
    world.assign(ONE, gone.object_id)
    world.cloud.directory.delete_service_principal(gone.object_id)
    assert world.call("GET", path(ONE)).status_code == 200
    assert error(world.assign())[1] == "RoleAssignmentUpdateNotPermitted"


def test_deleting_a_resource_deletes_its_assignments(world: ArmWorld) -> None:
    world.create_vault()
    world.assign(ONE, scope=VAULT)
    world.call("DELETE", VAULT)
    world.call("PUT", VAULT, {"location": "eastus", "properties": {"createMode": "recover"}})
    assert error(world.call("GET", path(ONE, VAULT)))[1] == "RoleAssignmentNotFound"


def test_an_assignment_may_lie_on_a_key_but_not_in_an_absent_vault(world: ArmWorld) -> None:
    world.create_vault()
    principal = world.principal().object_id
    on_key = world.assign(ONE, principal, scope=f"{VAULT}/keys/etcd")
    on_absent = world.assign(TWO, principal, scope=f"{VAULT}-2")
    assert (on_key.status_code, error(on_absent)[1]) == (201, "ResourceNotFound")


def test_a_list_holds_what_lies_at_above_and_below_its_scope(world: ArmWorld) -> None:
    world.create_vault()
    principal = world.principal()
    names = [str(uuid.uuid4()) for _ in range(3)]
    for name, scope in zip(names, (SUBSCRIPTION, GROUP, VAULT), strict=True):
        world.assign(name, principal.object_id, scope=scope)
    world.group("other")
    world.assign(ONE, principal.object_id, scope=f"{SUBSCRIPTION}/resourceGroups/other")

    def listed(**query: str) -> set[str]:
        answer = world.call("GET", f"{GROUP}/providers/Microsoft.Authorization/roleAssignments", **query)
        return {assignment["name"] for assignment in answer.json()["value"]} & {*names, ONE}

    assert listed(**{"$filter": f"principalId eq '{principal.object_id}'"}) == set(names)
    assert listed(**{"$filter": "atScope()"}) == set(names[:2])
    mine, upper = (f"assignedTo('{written}')" for written in (principal.object_id, principal.object_id.upper()))
    for text in (f"atScope() and {mine}", f"atScope() and {upper}", f"{mine} and atScope()"):
        assert listed(**{"$filter": text}) == set(names[:2])
    assert listed(**{"$filter": f"atScope() and assignedTo('{uuid.uuid4()}')"}) == set()
    assert listed() == set(names)
    assert listed(**{"$filter": f"principalId eq '{uuid.uuid4()}'"}) == set()
