"""Custom roles: what they grant, where they may be assigned, and who may write them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from localcloud.testing.arm import GROUP, ONE, READER, SUBSCRIPTION, TWO, VAULT, ArmWorld, error, vault_body

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
