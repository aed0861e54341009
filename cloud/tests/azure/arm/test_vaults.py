"""Vaults through ARM: the service's defaults, what cannot be changed back, and how long a name is taken."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from localcloud.core import clock
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld, error, vault_body

DELETED = f"{SUBSCRIPTION}/providers/Microsoft.KeyVault/locations/eastus/deletedVaults/kv-idstack-local"
SUBNET = f"{SUBSCRIPTION}/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/hc1-vnet/subnets/default"


def test_a_vault_is_answered_with_the_services_defaults(world: ArmWorld) -> None:
    assert world.create_vault()["properties"] == {
        "sku": {"family": "A", "name": "standard"},
        "tenantId": world.cloud.tenant_id,
        "accessPolicies": [],
        "enabledForDeployment": False,
        "enableSoftDelete": True,
        "softDeleteRetentionInDays": 90,
        "enableRbacAuthorization": True,
        "vaultUri": "https://kv-idstack-local.vault.azure.net/",
        "provisioningState": "Succeeded",
        "publicNetworkAccess": "Enabled",
    }


def test_a_vault_keeps_its_network_rules_as_the_service_prints_them(world: ArmWorld) -> None:
    rules = {"defaultAction": "deny", "ipRules": [{"value": "192.0.2.7"}], "virtualNetworkRules": [{"id": SUBNET}]}
    assert world.create_vault(networkAcls=rules)["properties"]["networkAcls"] == {
        "bypass": "AzureServices",
        "defaultAction": "Deny",
        "ipRules": [{"value": "192.0.2.7/32"}],
        "virtualNetworkRules": [{"id": SUBNET}],
    }


def test_a_network_rule_needs_rights_on_its_subnet(world: ArmWorld) -> None:
    local = world.principal(("Contributor", GROUP))
    body = vault_body(networkAcls={"virtualNetworkRules": [{"id": SUBNET}]})
    status, code, message = error(world.call("PUT", VAULT, body, caller=local))
    assert (status, code) == (403, "LinkedAuthorizationFailed")
    assert f"on the linked scope(s) '{SUBNET}'" in message


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"tenantId": None}, "tenantId"),
        ({"sku": {"family": "B", "name": "standard"}}, "sku"),
        ({"publicNetworkAccess": "Sometimes"}, "publicNetworkAccess"),
        ({"networkAcls": {"ipRule": []}}, "ipRule"),
    ],
)
def test_a_malformed_vault_is_refused(world: ArmWorld, properties: dict[str, Any], text: str) -> None:
    answer = world.call("PUT", VAULT, vault_body(**properties))
    assert answer.status_code == 400
    assert text in answer.text


@pytest.mark.parametrize("name", ["kv", "1kv-one", "kv-one-", "kv--one", "kv_one", "k" * 25])
def test_an_invalid_vault_name_is_refused(world: ArmWorld, name: str) -> None:
    answer = world.call("PUT", VAULT.replace("kv-idstack-local", name), vault_body())
    assert error(answer)[:2] == (400, "VaultNameNotValid")


def test_purge_protection_stays_and_the_retention_is_set_once(world: ArmWorld) -> None:
    world.create_vault(enablePurgeProtection=True, softDeleteRetentionInDays=7)
    rewritten = world.create_vault()["properties"]
    refused = [
        world.call("PATCH", VAULT, {"properties": {"enablePurgeProtection": False}}),
        world.call("PATCH", VAULT, {"properties": {"softDeleteRetentionInDays": 90}}),
    ]
    assert (rewritten["enablePurgeProtection"], rewritten["softDeleteRetentionInDays"]) == (True, 7)
    assert [error(answer)[:2] for answer in refused] == [(400, "BadRequest")] * 2


def test_a_patch_changes_what_it_names(world: ArmWorld) -> None:
    world.create_vault(networkAcls={"defaultAction": "Deny"})
    patched = world.call("PATCH", VAULT, {"tags": {"a": "b"}, "properties": {"publicNetworkAccess": "disabled"}}).json()
    assert (patched["tags"], patched["properties"]["publicNetworkAccess"]) == ({"a": "b"}, "Disabled")
    assert patched["properties"]["networkAcls"]["defaultAction"] == "Deny"


def test_a_vaults_name_is_taken_in_every_group(world: ArmWorld) -> None:
    world.create_vault()
    other = world.group("other")
    answer = world.call("PUT", f"{other}/providers/Microsoft.KeyVault/vaults/KV-idstack-local", vault_body())
    assert error(answer)[:2] == (409, "VaultAlreadyExists")


def test_a_deleted_vault_keeps_its_name_until_it_is_recovered(world: ArmWorld) -> None:
    world.create_vault()
    world.vault("PUT", "/secrets/one", {"value": "kept"})
    deleted = world.call("DELETE", VAULT)
    refused = world.call("PUT", VAULT, vault_body())
    recovered = world.call("PUT", VAULT, {"location": "eastus", "properties": {"createMode": "recover"}})
    assert (deleted.status_code, recovered.status_code) == (200, 200)
    assert error(refused)[:2] == (409, "ConflictError")
    assert "already exists in deleted state" in error(refused)[2]
    assert world.vault("GET", "/secrets/one").json()["value"] == "kept"


def test_a_deleted_vault_is_gone_from_arm_and_from_the_data_plane(world: ArmWorld) -> None:
    world.create_vault()
    world.call("DELETE", VAULT)
    assert error(world.call("GET", VAULT))[1] == "ResourceNotFound"
    assert error(world.vault("GET", "/secrets"))[:2] == (404, "VaultNotFound")
    assert world.call("DELETE", VAULT).status_code == 204


def test_a_deleted_vault_can_be_seen_and_purged(world: ArmWorld) -> None:
    world.create_vault()
    world.vault("PUT", "/secrets/one", {"value": "v"})
    world.call("DELETE", VAULT)
    shown = world.call("GET", DELETED).json()
    listed = world.call("GET", f"{SUBSCRIPTION}/providers/Microsoft.KeyVault/deletedVaults").json()["value"]
    assert listed == [shown]
    assert shown["properties"]["vaultId"] == VAULT
    assert world.call("POST", f"{DELETED}/purge").status_code == 200
    assert error(world.call("GET", DELETED))[:2] == (404, "DeletedVaultNotFound")
    world.create_vault()
    assert world.vault("GET", "/secrets").json()["value"] == []


def test_purge_protection_refuses_a_purge_until_the_retention_has_passed(world: ArmWorld) -> None:
    world.create_vault(enablePurgeProtection=True, softDeleteRetentionInDays=7)
    world.call("DELETE", VAULT)
    assert world.call("POST", f"{DELETED}/purge").status_code == 405
    with clock.moved_ahead(timedelta(days=7)):
        assert world.call("PUT", VAULT, vault_body()).status_code == 201
