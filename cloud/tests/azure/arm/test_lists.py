"""What ARM's lists filter, expand and cut; who may read roles at the root."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from localcloud.testing.arm import GROUP, READER, SUBSCRIPTION, VAULT, ArmWorld, error
from localcloud.testing.azure import ask

# ARM's entry: authentication, authorization, and the errors of requests that do not pass it.

HOST = "https://management.azure.com"


def test_a_request_without_a_bearer_is_challenged(world: ArmWorld) -> None:
    answer = ask(world.arm, HOST, "GET", GROUP, params={"api-version": "2021-04-01"})
    authority = f"https://localhost:8443/{world.cloud.tenant_id}"
    assert f'Bearer authorization_uri="{authority}"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    "audience",
    [
        "https://management.azure.com",
        "https://management.azure.com/",
        "https://management.core.windows.net",
        "https://management.core.windows.net/",
    ],
)
def test_a_token_for_any_name_of_arm_is_accepted(world: ArmWorld, audience: str) -> None:
    token = world.cloud.tokens.issue(world.deployer, audience)
    answer = ask(world.arm, HOST, "GET", GROUP, params={"api-version": "2021-04-01"}, token=token)
    assert answer.status_code == 200


def test_the_api_version_is_asked_for_before_the_bearer(world: ArmWorld) -> None:
    answer = ask(world.arm, HOST, "GET", GROUP)
    assert error(answer)[:2] == (400, "MissingApiVersionParameter")


def test_a_caller_without_rights_does_not_learn_what_exists(world: ArmWorld) -> None:
    nobody = world.principal()
    groups = [GROUP, f"{SUBSCRIPTION}/resourceGroups/absent"]
    assert [world.call("GET", group, caller=nobody).status_code for group in groups] == [403, 403]


def test_an_absent_group_is_not_found(world: ArmWorld) -> None:
    group = f"{SUBSCRIPTION}/resourceGroups/absent"
    expected = (404, "ResourceGroupNotFound", "Resource group 'absent' could not be found.")
    paths = [group, f"{group}/providers/Microsoft.KeyVault/vaults/kv-one", f"{group}/providers/Microsoft.Compute/disks"]
    assert [error(world.call("GET", path)) for path in paths] == [expected] * 3


def test_a_group_is_found_in_any_letter_case_and_by_head(world: ArmWorld) -> None:
    spelt = GROUP.replace("resourceGroups", "resourcegroups").replace("identity-local", "Identity-Local")
    assert [world.call(method, spelt).status_code for method in ("GET", "HEAD")] == [200, 204]


def test_the_subscription_lists_its_groups(world: ArmWorld) -> None:
    world.group("other")
    listed = world.call("GET", f"{SUBSCRIPTION}/resourceGroups").json()["value"]
    assert [group["name"] for group in listed] == ["identity-local", "other"]


# What lies above the resource groups: lists that are never refused and show what the caller may see.


@pytest.fixture
def filled(world: ArmWorld) -> ArmWorld:
    """A world with a vault and an identity, in a group each."""
    world.create_vault()
    identity = f"{world.group('other')}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/one"
    world.call("PUT", identity, {"location": "eastus"}).raise_for_status()
    return world


def listed(world: ArmWorld, path: str, **options: Any) -> list[dict[str, Any]]:
    answer = world.call("GET", path, **options)
    assert answer.is_success, answer.text
    return list(answer.json()["value"])


def test_everybody_sees_the_tenant(world: ArmWorld) -> None:
    [tenant] = listed(world, "/tenants", caller=world.principal())

    assert (tenant["tenantId"], tenant["tenantCategory"]) == (world.cloud.tenant_id, "Home")


@pytest.mark.parametrize("scope", [SUBSCRIPTION, GROUP, VAULT])
def test_a_role_anywhere_in_it_shows_the_subscription(filled: ArmWorld, scope: str) -> None:
    [found] = listed(filled, "/subscriptions", caller=filled.principal(("Reader", scope)))

    assert (found["id"], found["state"]) == (SUBSCRIPTION, "Enabled")


def test_without_a_role_there_is_no_subscription(world: ArmWorld) -> None:
    assert listed(world, "/subscriptions", caller=world.principal()) == []
    assert error(world.call("GET", SUBSCRIPTION, caller=world.principal()))[:2] == (403, "AuthorizationFailed")


def test_groups_and_resources_are_those_that_the_caller_may_read(filled: ArmWorld) -> None:
    reader = filled.principal(("Reader", GROUP))

    groups = listed(filled, f"{SUBSCRIPTION}/resourceGroups", caller=reader)
    assert [group["name"] for group in groups] == ["identity-local"]
    assert [resource["id"] for resource in listed(filled, f"{SUBSCRIPTION}/resources", caller=reader)] == [VAULT]
    assert listed(filled, f"{GROUP.replace('identity-local', 'other')}/resources", caller=reader) == []


def test_a_resource_is_listed_without_its_properties(filled: ArmWorld) -> None:
    [vault] = listed(filled, f"{GROUP}/resources")

    assert vault.keys() <= {"id", "name", "type", "location", "tags", "sku", "kind", "identity"}
    assert (vault["name"], vault["type"]) == ("kv-idstack-local", "Microsoft.KeyVault/vaults")


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("resourceType eq 'Microsoft.KeyVault/vaults'", ["kv-idstack-local"]),
        ("resourcetype eq 'microsoft.keyvault/VAULTS' and name eq 'kv-idstack-local'", ["kv-idstack-local"]),
        ("resourceGroup eq 'other'", ["one"]),
        ("location eq 'westus'", []),
        ("resourceType eq 'microsoft.keyvault/vaults' or name eq 'x'", ["kv-idstack-local"]),
        ("resourceType ne 'Microsoft.KeyVault/vaults'", ["one"]),
        ("substringof('idstack', name)", ["kv-idstack-local"]),
        ("startswith(name, 'x')", []),
        ("tagName eq 'a' and tagValue eq 'b'", []),
        ("", ["kv-idstack-local", "one"]),
    ],
)
def test_resources_are_filtered(filled: ArmWorld, expression: str, names: list[str]) -> None:
    found = listed(filled, f"{SUBSCRIPTION}/resources", **{"$filter": expression})

    assert [resource["name"] for resource in found] == names


def test_whoever_has_a_role_in_a_group_reads_subscription_locations_and_providers(world: ArmWorld) -> None:
    member = world.principal(("Azure Red Hat OpenShift Cloud Controller Manager", GROUP))

    locations = listed(world, f"{SUBSCRIPTION}/locations", caller=member)
    assert {"eastus", "westeurope"} <= {location["name"] for location in locations}
    providers = {
        provider["namespace"]: provider for provider in listed(world, f"{SUBSCRIPTION}/providers", caller=member)
    }
    vaults = world.call("GET", f"{SUBSCRIPTION}/providers/microsoft.keyvault", caller=member).json()
    assert vaults == providers["Microsoft.KeyVault"]
    assert vaults["registrationState"] == "Registered"
    assert "vaults/secrets" in {resource_type_name["resourceType"] for resource_type_name in vaults["resourceTypes"]}
    assert world.call("GET", SUBSCRIPTION, caller=member).json()["state"] == "Enabled"
    for path in ("", "/locations", "/providers", "/providers/Microsoft.Compute"):
        refused = world.call("GET", f"{SUBSCRIPTION}{path}", caller=world.principal())
        assert error(refused)[:2] == (403, "AuthorizationFailed")


def test_the_compute_provider_names_the_zones_of_each_region(world: ArmWorld) -> None:
    types = world.call("GET", f"{SUBSCRIPTION}/providers/Microsoft.Compute").json()["resourceTypes"]

    [machines] = [type_ for type_ in types if type_["resourceType"] == "virtualMachines"]
    assert {"location": "East US", "zones": ["1", "2", "3"]} in machines["zoneMappings"]


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
