"""Secrets written through ARM: with control-plane rights alone, and without ever a value in an answer."""

from __future__ import annotations

import httpx
import pytest

from localcloud.testing.arm import GROUP, VAULT, ArmWorld, error

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


def test_a_patch_of_tags_keeps_version_and_dates(vault: ArmWorld) -> None:
    before = put(vault, contentType="text/plain", attributes={"enabled": True, "nbf": 1, "exp": 2}).json()
    patched = vault.call("PATCH", SECRET, {"tags": {"c": "d"}}).json()

    assert patched["tags"] == {"c": "d"}
    assert patched["properties"]["attributes"].pop("updated") >= before["properties"]["attributes"].pop("updated")
    assert patched["properties"] == before["properties"]


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


def test_a_version_written_through_the_vault_is_seen_by_arm(vault: ArmWorld) -> None:
    put(vault)
    version = vault.vault("PUT", "/secrets/cpo-hc1-json", {"value": "newer"}).json()["id"]
    assert vault.call("GET", SECRET).json()["properties"]["secretUriWithVersion"] == version


def test_a_patch_changes_the_attributes_of_the_current_version(vault: ArmWorld) -> None:
    before = put(vault).json()["properties"]["secretUriWithVersion"]
    patched = vault.call("PATCH", SECRET, {"properties": {"attributes": {"enabled": False}}}).json()["properties"]
    assert (patched["secretUriWithVersion"], patched["attributes"]["enabled"]) == (before, False)


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
