"""Vaults through ARM: the service's defaults, what cannot be changed back, and how long a name is taken."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from localcloud.core import clock
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld, error, vault_body

# Secrets written through ARM: with control-plane rights alone, and without ever a value in an answer.

SECRET = f"{VAULT}/secrets/cpo-hc1-json"


def put(world: ArmWorld, value: str = "marker-value", **more: object) -> httpx.Response:
    return world.call("PUT", SECRET, {"tags": {"a": "b"}, "properties": {"value": value, **more}})


def test_a_secrets_answer_has_uris_and_dates_but_not_its_value(vault: ArmWorld) -> None:
    created = put(vault, contentType="application/json", attributes={"enabled": True, "nbf": 1, "exp": 2})
    secret = created.json()
    uri = "https://kv-idstack-local.vault.azure.net/secrets/cpo-hc1-json"
    assert created.status_code == 201
    assert (secret["id"], secret["type"], secret["tags"]) == (SECRET, "Microsoft.KeyVault/vaults/secrets", {"a": "b"})
    assert secret["properties"]["secretUri"] == uri
    assert secret["properties"]["secretUriWithVersion"].startswith(f"{uri}/")
    assert secret["properties"]["contentType"] == "application/json"
    attributes = secret["properties"]["attributes"]
    assert (attributes["enabled"], attributes["nbf"], attributes["exp"]) == (True, 1, 2)


def test_no_answer_of_arm_and_nothing_in_the_store_holds_the_value(vault: ArmWorld) -> None:
    answers = [
        put(vault),
        vault.call("GET", SECRET),
        vault.call("GET", f"{VAULT}/secrets"),
        vault.call("PATCH", SECRET, {"properties": {"attributes": {"enabled": True}}}),
    ]
    everything = [document for kind in ("arm", "keyvault-secret") for document in vault.store.items(kind)]
    assert vault.vault("GET", "/secrets/cpo-hc1-json").json()["value"] == "marker-value"
    assert "marker-value" not in "".join(answer.text for answer in answers) + str(everything)


def test_each_put_is_a_new_version_of_one_secret(vault: ArmWorld) -> None:
    first, second = put(vault, "one"), put(vault, "two")
    uris = [answer.json()["properties"]["secretUriWithVersion"] for answer in (first, second)]
    by_version = [vault.vault("GET", uri.partition(".net")[2]).json()["value"] for uri in uris]
    assert (first.status_code, second.status_code) == (201, 200)
    assert by_version == ["one", "two"]
    assert vault.vault("GET", "/secrets/cpo-hc1-json/").json()["value"] == "two"
    newer = vault.vault("PUT", "/secrets/cpo-hc1-json", {"value": "newer"}).json()["id"]
    assert vault.call("GET", SECRET).json()["properties"]["secretUriWithVersion"] == newer


def test_a_put_of_what_is_there_already_adds_no_version(vault: ArmWorld) -> None:
    attributes = {"enabled": True, "nbf": 1, "exp": 2}
    first, again = (put(vault, contentType="text/plain", attributes=attributes) for _ in range(2))

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert len(vault.vault("GET", "/secrets/cpo-hc1-json/versions").json()["value"]) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"tags": {"a": "c"}},
        {"properties": {"value": "other"}},
        {"properties": {"value": "marker-value", "contentType": "text/plain"}},
        {"properties": {"value": "marker-value", "attributes": {"exp": 2}}},
        {"properties": {"value": "marker-value", "attributes": {"enabled": False}}},
    ],
)
def test_a_put_that_changes_anything_adds_a_version(vault: ArmWorld, changed: dict[str, object]) -> None:
    before = put(vault).json()["properties"]["secretUriWithVersion"]
    body = {"tags": {"a": "b"}, "properties": {"value": "marker-value"}, **changed}

    assert vault.call("PUT", SECRET, body).json()["properties"]["secretUriWithVersion"] != before


def test_a_reader_sees_dates_and_tags_but_no_tags_in_a_list_and_changes_nothing(vault: ArmWorld) -> None:
    written = put(vault, attributes={"enabled": True, "nbf": 1, "exp": 2}).json()
    reader = vault.principal(("Reader", GROUP))
    body = {"properties": {"value": "v"}}

    assert vault.call("GET", SECRET, caller=reader).json() == written
    without_tags = {name: value for name, value in written.items() if name != "tags"}
    assert vault.call("GET", f"{VAULT}/secrets", caller=reader).json()["value"] == [without_tags]
    refused = [vault.call(method, SECRET, body, caller=reader) for method in ("PUT", "PATCH", "DELETE")]
    assert {error(answer)[:2] for answer in refused} == {(403, "AuthorizationFailed")}


def test_a_patch_keeps_the_version_and_what_it_does_not_name(vault: ArmWorld) -> None:
    before = put(vault, contentType="text/plain", attributes={"enabled": True, "nbf": 1, "exp": 2}).json()
    patched = vault.call("PATCH", SECRET, {"tags": {"c": "d"}}).json()

    assert patched["tags"] == {"c": "d"}
    assert patched["properties"]["attributes"].pop("updated") >= before["properties"]["attributes"].pop("updated")
    assert patched["properties"] == before["properties"]
    disabled = vault.call("PATCH", SECRET, {"properties": {"attributes": {"enabled": False}}}).json()["properties"]
    assert disabled["secretUriWithVersion"] == before["properties"]["secretUriWithVersion"]
    assert disabled["attributes"]["enabled"] is False


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH"])
@pytest.mark.parametrize(
    ("place", "code"),
    [("resourceGroups/other", "ResourceGroupNotFound"), ("vaults/kv-other", "ParentResourceNotFound")],
)
def test_a_secret_needs_its_group_and_vault(vault: ArmWorld, method: str, place: str, code: str) -> None:
    there = {"resourceGroups/other": "resourceGroups/identity-local", "vaults/kv-other": "vaults/kv-idstack-local"}
    path = SECRET.replace(there[place], place)

    body = None if method == "GET" else {"properties": {"value": "v"}}
    assert error(vault.call(method, path, body))[:2] == (404, code)


def test_a_soft_deleted_secret_keeps_its_name(vault: ArmWorld) -> None:
    put(vault)
    vault.vault("DELETE", "/secrets/cpo-hc1-json")
    assert error(vault.call("GET", SECRET))[1] == "ResourceNotFound"
    assert error(put(vault))[:2] == (409, "Conflict")


def test_writing_a_secret_needs_control_plane_rights_only(vault: ArmWorld) -> None:
    contributor = vault.principal(("Contributor", VAULT))
    officer = vault.principal(("Key Vault Secrets Officer", VAULT))
    body = {"properties": {"value": "v"}}
    statuses = [vault.call("PUT", SECRET, body, caller=caller).status_code for caller in (contributor, officer)]
    assert statuses == [201, 403]


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("under_score", {"value": "v"}),
        ("n" * 128, {"value": "v"}),
        ("one", {}),
        ("one", {"value": "v" * (25 * 1024 + 1)}),
        ("one", {"value": "v", "attributes": {"nbf": "today"}}),
        ("one", {"value": "v", "attributes": {"expires": 1}}),
        ("one", {"value": "v", "content_type": "x"}),
    ],
)
def test_a_malformed_secret_is_refused(vault: ArmWorld, name: str, properties: dict[str, object]) -> None:
    answer = vault.call("PUT", f"{VAULT}/secrets/{name}", {"properties": properties})
    assert answer.status_code == 400, answer.text


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


def test_a_deleted_vault_keeps_its_name_until_it_is_recovered(world: ArmWorld) -> None:
    world.create_vault()
    world.vault("PUT", "/secrets/one", {"value": "kept"})
    deleted = world.call("DELETE", VAULT)
    assert error(world.call("GET", VAULT))[1] == "ResourceNotFound"
    assert error(world.vault("GET", "/secrets"))[:2] == (404, "VaultNotFound")
    assert world.call("DELETE", VAULT).status_code == 204
    refused = world.call("PUT", VAULT, vault_body())
    recovered = world.call("PUT", VAULT, {"location": "eastus", "properties": {"createMode": "recover"}})
    assert (deleted.status_code, recovered.status_code) == (200, 200)
    assert error(refused)[:2] == (409, "ConflictError")
    assert "already exists in deleted state" in error(refused)[2]
    assert world.vault("GET", "/secrets/one").json()["value"] == "kept"


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
