"""ARM's entry: authentication, authorization, and the errors of requests that do not pass it."""

from __future__ import annotations

import pytest

from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld, error
from localcloud.testing.azure import ask

HOST = "https://management.azure.com"


def test_a_request_without_a_bearer_is_challenged(world: ArmWorld) -> None:
    answer = ask(world.arm, HOST, "GET", GROUP, params={"api-version": "2021-04-01"})
    assert error(answer) == (
        401,
        "AuthenticationFailed",
        "Authentication failed. The 'Authorization' header is missing.",
    )
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


def test_an_absent_resource_is_not_found(world: ArmWorld) -> None:
    assert error(world.call("GET", VAULT)) == (
        404,
        "ResourceNotFound",
        "The Resource 'Microsoft.KeyVault/vaults/kv-idstack-local' under resource group 'identity-local' was not found."
        " For more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )


def test_a_child_of_an_absent_parent_is_refused(world: ArmWorld) -> None:
    body = {"properties": {"value": "v"}}
    assert error(world.call("PUT", f"{VAULT}/secrets/one", body)) == (
        404,
        "ParentResourceNotFound",
        f"Failed to perform 'write' on resource(s) of type 'vaults/secrets', because the parent resource '{VAULT}' "
        "could not be found.",
    )


@pytest.mark.parametrize(
    ("resource", "body", "place"),
    [
        ("Network/loadBalancers/one", {"sku": "Standard"}, "sku"),
        ("Network/loadBalancers/one", {"properties": {"outboundRules": ["one"]}}, "properties.outboundRules"),
        ("Network/virtualNetworks/one", {"properties": {"addressSpace": ["10.0.0.0/16"]}}, "properties.addressSpace"),
        ("ContainerService/managedClusters/one", {"properties": {"aadProfile": True}}, "properties.aadProfile"),
        ("KeyVault/vaults/kv-one", {"properties": {"networkAcls": {"ipRules": [7]}}}, "properties.networkAcls.ipRules"),
    ],
)
def test_a_member_that_should_be_an_object_is_named(world: ArmWorld, resource: str, body: object, place: str) -> None:
    assert error(world.call("PUT", f"{GROUP}/providers/Microsoft.{resource}", body)) == (
        400,
        "InvalidRequestContent",
        f"The request content was invalid and could not be deserialized: '{place}: a JSON object is expected'.",
    )


def test_a_group_is_found_in_any_letter_case_and_by_head(world: ArmWorld) -> None:
    spelt = GROUP.replace("resourceGroups", "resourcegroups").replace("identity-local", "Identity-Local")
    assert [world.call(method, spelt).status_code for method in ("GET", "HEAD")] == [200, 204]


def test_the_subscription_lists_its_groups(world: ArmWorld) -> None:
    world.group("other")
    listed = world.call("GET", f"{SUBSCRIPTION}/resourceGroups").json()["value"]
    assert [group["name"] for group in listed] == ["identity-local", "other"]
