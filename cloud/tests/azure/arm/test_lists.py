"""What ARM's lists filter, expand and cut; who may read roles at the root."""

from __future__ import annotations

import uuid

import pytest

from localcloud.testing.arm import GROUP, READER, SUBSCRIPTION, VAULT, ArmWorld, error

GROUPS = f"{SUBSCRIPTION}/resourceGroups"


@pytest.fixture
def tagged(world: ArmWorld) -> ArmWorld:
    for name, tags in {"red": {"team": "red"}, "blue": {"Team": "blue"}, "none": {}}.items():
        assert world.call("PUT", f"{GROUPS}/{name}", {"location": "eastus", "tags": tags}).is_success
    return world


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tagName eq 'team' and tagValue eq 'red'", ["red"]),
        ("tagname  eq 'TEAM' and tagvalue eq 'red'", ["red"]),
        ("tagName eq 'team'", ["blue", "red"]),
    ],
)
def test_groups_are_filtered_by_a_tag(tagged: ArmWorld, text: str, names: list[str]) -> None:
    found = tagged.call("GET", GROUPS, **{"$filter": text}).json()["value"]

    assert sorted(group["name"] for group in found) == names


@pytest.mark.parametrize("text", ["colour eq 'red'", "tagValue eq 'red'", "tagName ne 'a'", "name eq 'a'", "x"])
def test_another_filter_of_groups_is_refused(tagged: ArmWorld, text: str) -> None:
    assert error(tagged.call("GET", GROUPS, **{"$filter": text}))[:2] == (400, "InvalidFilterInQueryString")


def test_a_list_comes_in_pages_if_top_asks_for_it(tagged: ArmWorld) -> None:
    first = tagged.call("GET", GROUPS, **{"$top": "2"}).json()
    token = dict(part.split("=") for part in first["nextLink"].partition("?")[2].split("&"))["%24skiptoken"]
    rest = tagged.call("GET", GROUPS, **{"$top": "9", "$skiptoken": token}).json()

    assert (len(first["value"]), len(rest["value"])) == (2, 2)
    assert "nextLink" not in rest
    assert [error(tagged.call("GET", GROUPS, **{"$top": top}))[0] for top in ("many", "0")] == [400, 400]


def test_resources_show_their_times_and_state_on_request_alone(world: ArmWorld) -> None:
    world.create_vault()
    wanted = ("createdTime", "changedTime", "provisioningState")
    [found] = world.call("GET", f"{SUBSCRIPTION}/resources", **{"$expand": ",".join(wanted)}).json()["value"]
    [bare] = world.call("GET", f"{SUBSCRIPTION}/resources").json()["value"]

    assert set(wanted) <= found.keys()
    assert not set(wanted) & (bare.keys() | world.call("GET", VAULT).json().keys())
    assert error(world.call("GET", f"{SUBSCRIPTION}/resources", **{"$expand": "all"}))[:2] == (501, "NotEmulated")


def test_everybody_reads_the_built_in_roles_at_the_root(world: ArmWorld) -> None:
    nobody, root = world.principal(), "/providers/Microsoft.Authorization/roleDefinitions"
    # The Azure CLI writes the scope `/` before it.
    doubled = f"https://management.azure.com/{root}"
    [reader] = world.call("GET", doubled, caller=nobody, **{"$filter": "roleName eq 'reader'"}).json()["value"]

    assert reader["name"] == READER
    assert world.call("GET", f"{root}/{READER}", caller=nobody).status_code == 200
    assert world.call("GET", f"{SUBSCRIPTION}{root}", caller=nobody).status_code == 403
    assert world.call("PUT", f"{root}/{uuid.uuid4()}", {}, caller=nobody).status_code == 403


def test_values_and_ids_are_taken_in_any_letter_case(world: ArmWorld) -> None:
    sku = {"family": "a", "name": "Premium"}
    vault = world.create_vault(sku=sku, publicNetworkAccess="disabled", networkAcls=None)
    account = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/account"
    body = {"location": "eastus", "kind": "storagev2", "sku": {"name": "standard_lrs"}}

    assert vault["properties"]["sku"] == {"family": "A", "name": "premium"}
    assert vault["properties"]["publicNetworkAccess"] == "Disabled"
    made = world.call("PUT", account, body).json()
    assert (made["kind"], made["sku"]["name"]) == ("StorageV2", "Standard_LRS")


def test_a_member_that_is_null_is_as_absent(world: ArmWorld) -> None:
    path = f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}"
    role = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{READER}"
    properties = {"roleDefinitionId": role, "principalId": world.principal().object_id.upper()}
    nulls = dict.fromkeys(("principalType", "condition", "conditionVersion", "description"))

    made = world.call("PUT", path, {"properties": {**properties, **nulls}, "tags": None})

    assert made.status_code == 201, made.text
    assert made.json()["properties"]["principalType"] == "ServicePrincipal"
