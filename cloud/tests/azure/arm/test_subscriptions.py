"""What lies above the resource groups: lists that are never refused and show what the caller may see."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld, error


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


def test_locations_and_providers_are_listed_to_readers(world: ArmWorld) -> None:
    reader = world.principal(("Reader", SUBSCRIPTION))

    locations = listed(world, f"{SUBSCRIPTION}/locations", caller=reader)
    assert {"eastus", "westeurope"} <= {location["name"] for location in locations}
    providers = {
        provider["namespace"]: provider for provider in listed(world, f"{SUBSCRIPTION}/providers", caller=reader)
    }
    vaults = world.call("GET", f"{SUBSCRIPTION}/providers/microsoft.keyvault", caller=reader).json()
    assert vaults == providers["Microsoft.KeyVault"]
    assert vaults["registrationState"] == "Registered"
    assert "vaults/secrets" in {resource_type_name["resourceType"] for resource_type_name in vaults["resourceTypes"]}
    for path in ("locations", "providers"):
        refused = world.call("GET", f"{SUBSCRIPTION}/{path}", caller=world.principal())
        assert error(refused)[:2] == (403, "AuthorizationFailed")
