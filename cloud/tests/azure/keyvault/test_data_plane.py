"""The data plane as bytes on the wire: vault by Host, challenge, errors, keys; and `localcloud recover`."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from localcloud.azure.keyvault.api import NotDeletedError, recover
from localcloud.azure.keyvault.keys import Keys
from localcloud.azure.keyvault.secrets import Vaults
from localcloud.azure.resource_store import Resources
from localcloud.core import clock
from localcloud.testing.arm import GROUP, VAULT, ArmWorld, error, vault_body
from localcloud.testing.azure import ask

URI = "https://kv-idstack-local.vault.azure.net"
ALGORITHMS = {"alg": "RSA-OAEP-256", "value": "dGV4dA"}


def inner(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["innererror"]["code"])


def add_key(world: ArmWorld, vault_name: str = "kv-idstack-local") -> str:
    vault = Vaults(world.resources).named(vault_name)
    assert vault is not None
    return Keys(world.store).add(vault, "etcd").version


def test_a_request_without_a_bearer_gets_a_challenge(vault: ArmWorld) -> None:
    answer = ask(vault.keyvault, URI, "GET", "/secrets/one/", params={"api-version": "7.4"})
    assert error(answer)[:2] == (401, "Unauthorized")
    assert answer.headers["WWW-Authenticate"] == (
        f'Bearer authorization="https://localhost:8443/{vault.cloud.tenant_id}", resource="https://vault.azure.net"'
    )


def test_a_token_for_arm_is_not_a_token_for_the_vault(vault: ArmWorld) -> None:
    token = vault.cloud.tokens.issue(vault.deployer, "https://management.azure.com")
    answer = ask(vault.keyvault, URI, "GET", "/secrets", params={"api-version": "7.4"}, token=token)
    assert (answer.status_code, "WWW-Authenticate" in answer.headers) == (401, True)


@pytest.mark.parametrize("path", ["/secrets/one", "/secrets/one/"])
def test_a_secret_is_read_with_and_without_the_trailing_slash(vault: ArmWorld, path: str) -> None:
    written = vault.vault("PUT", "/secrets/one", {"value": "v", "contentType": "text/plain"}).json()
    read = vault.vault("GET", path).json()
    assert read == written
    assert read["id"].startswith(f"{URI}/secrets/one/")
    assert read["attributes"]["recoveryLevel"] == "Recoverable+Purgeable"


def test_an_absent_secret_and_an_absent_version_are_not_found(vault: ArmWorld) -> None:
    vault.vault("PUT", "/secrets/one", {"value": "v"})
    for name in ("two", "one/00000000000000000000000000000000"):
        answer = vault.vault("GET", f"/secrets/{name}")
        assert error(answer)[:2] == (404, "SecretNotFound")
        assert error(answer)[2].startswith(f"A secret with (name/id) {name} was not found in this key vault.")


def test_a_refusal_names_caller_action_and_resource(vault: ArmWorld) -> None:
    stranger = vault.principal()
    answer = vault.vault("GET", "/secrets/one", caller=stranger)
    assert inner(answer) == "ForbiddenByRbac"
    assert error(answer)[2].split("\r\n") == [
        "Caller is not authorized to perform action on resource.",
        "If role assignments, deny assignments or role definitions were changed recently, "
        "please observe propagation time.",
        f"Caller: appid={stranger.app_id};oid={stranger.object_id};iss=https://sts.windows.net/{vault.cloud.tenant_id}/",
        "Action: 'Microsoft.KeyVault/vaults/secrets/getSecret/action'",
        f"Resource: '{VAULT.lower()}/secrets/one'",
        "Assignment: (not found)",
        "DenyAssignmentId: null",
        "DecisionReason: 'DeniedWithNoValidRBAC' ",
        "Vault: kv-idstack-local;location=eastus",
        "",
    ]


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        ("Key Vault Secrets User", [200, 200, 403, 403, 403]),
        ("Key Vault Secrets Officer", [200, 200, 200, 200, 200]),
        ("Key Vault Crypto User", [403, 403, 403, 403, 403]),
        ("Contributor", [403, 403, 403, 403, 403]),
        ("Reader", [403, 403, 403, 403, 403]),
        ("Key Vault Reader", [403, 200, 403, 403, 403]),
    ],
)
def test_each_role_opens_what_azure_lets_it_open(vault: ArmWorld, role: str, statuses: list[int]) -> None:
    vault.vault("PUT", "/secrets/one", {"value": "v"})
    caller = vault.principal((role, VAULT))
    requests = [
        ("GET", "/secrets/one", None),
        ("GET", "/secrets", None),
        ("PUT", "/secrets/two", {"value": "v"}),
        ("PATCH", "/secrets/one", {"tags": {"a": "b"}}),
        ("DELETE", "/secrets/one", None),
    ]
    assert [vault.vault(*request, caller=caller).status_code for request in requests] == statuses


def test_a_disabled_version_is_listed_and_not_read(vault: ArmWorld) -> None:
    old, current = (vault.vault("PUT", "/secrets/one", {"value": value}).json()["id"] for value in ("old", "new"))
    officer = vault.principal(("Key Vault Secrets Officer", VAULT))
    path = old.removeprefix(URI)
    updated = vault.vault("PATCH", path, {"attributes": {"enabled": False}}, caller=officer)

    assert (updated.status_code, updated.json()["attributes"]["enabled"]) == (200, False)
    assert "value" not in updated.json()
    assert inner(vault.vault("GET", path, caller=officer)) == "SecretDisabled"
    assert vault.vault("GET", "/secrets/one", caller=officer).json()["id"] == current
    listed = vault.vault("GET", "/secrets/one/versions", caller=officer).json()["value"]
    assert {item["id"]: item["attributes"]["enabled"] for item in listed} == {old: False, current: True}
    assert not [item for item in listed if "value" in item]


def test_versions_are_listed_by_their_names_and_not_by_age(vault: ArmWorld) -> None:
    made = [vault.vault("PUT", "/secrets/one", {"value": "v"}).json()["id"] for _ in range(12)]
    listed = [version["id"] for version in vault.vault("GET", "/secrets/one/versions").json()["value"]]

    assert listed == sorted(made) != made


@pytest.mark.parametrize(
    ("asked", "sizes"), [("", [25, 5]), ("?maxresults=12", [12, 12, 6]), ("?maxresults=1", [1] * 30)]
)
def test_a_list_comes_in_pages_that_link_to_each_other(vault: ArmWorld, asked: str, sizes: list[int]) -> None:
    made = {vault.vault("PUT", "/secrets/one", {"value": "v"}).json()["id"] for _ in range(30)}
    link: str | None = f"{URI}/secrets/one/versions{asked}"
    pages: list[list[str]] = []
    token = vault.cloud.tokens.issue(vault.deployer, "https://vault.azure.net")
    while link:
        path = httpx.URL(link).path
        # The link is whole: api-version and page size are in it.
        query = dict(httpx.URL(link).params) if pages else {**httpx.URL(link).params, "api-version": "7.4"}
        page = ask(vault.keyvault, URI, "GET", path, params=query, token=token).json()
        pages.append([version["id"] for version in page["value"]])
        link = page["nextLink"]
        assert link is None or link.startswith(f"{URI}:443/secrets/one/versions?")

    assert [len(ids) for ids in pages] == sizes
    assert {item for page in pages for item in page} == made


@pytest.mark.parametrize("query", ["maxresults=0", "maxresults=26", "maxresults=x", "$skiptoken=x"])
def test_a_page_that_is_none_is_refused(vault: ArmWorld, query: str) -> None:
    name, _, value = query.partition("=")
    token = vault.cloud.tokens.issue(vault.deployer, "https://vault.azure.net")
    params = {"api-version": "7.4", name: value}
    answer = ask(vault.keyvault, URI, "GET", "/secrets", params=params, token=token)

    assert error(answer)[:2] == (400, "BadParameter")


def test_purge_protection_keeps_a_deleted_secret_until_its_time(world: ArmWorld) -> None:
    world.create_vault(enablePurgeProtection=True, softDeleteRetentionInDays=7)
    world.vault("PUT", "/secrets/one", {"value": "v"})
    world.vault("DELETE", "/secrets/one")
    # Officers may purge where the vault lets them; here the vault does not.
    assert world.vault("DELETE", "/deletedsecrets/one").status_code == 403
    with clock.moved_ahead(timedelta(days=7)):
        assert error(world.vault("GET", "/deletedsecrets/one"))[1] == "SecretNotFound"
        assert world.vault("PUT", "/secrets/one", {"value": "v"}).status_code == 200


def test_a_loopback_host_means_the_one_vault_that_was_not_seeded(world: ArmWorld) -> None:
    hosts = ["localhost:8443", "127.0.0.1:8443", "[::1]:8443"]
    seeded = {"tenantId": world.cloud.tenant_id, "enableRbacAuthorization": True}
    name = "kv-etcd-local"
    Vaults(Resources(world.store)).put(
        {
            "id": f"{GROUP}/providers/Microsoft.KeyVault/vaults/{name}",
            "name": name,
            "type": "Microsoft.KeyVault/vaults",
            "location": "eastus",
            "tags": {},
            "seeded": True,
            "properties": seeded,
        }
    )
    before = [error(world.vault("GET", "/secrets", host=host))[:2] for host in hosts]
    world.create_vault()
    after = [world.vault("PUT", "/secrets/one", {"value": "v"}, host=host).json()["id"] for host in hosts]
    other = world.call("PUT", f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv-two", vault_body())
    assert before == [(404, "VaultNotFound")] * 3
    assert [secret_id.partition("/secrets")[0] for secret_id in after] == [URI] * 3
    assert other.status_code == 201
    assert "none or several" in error(world.vault("GET", "/secrets", host="localhost"))[2]


@pytest.mark.parametrize("host", ["kv-absent.vault.azure.net", "example.com"])
def test_a_host_that_names_no_vault_is_refused(vault: ArmWorld, host: str) -> None:
    answer = vault.vault("GET", "/secrets", host=host)
    assert error(answer)[:2] == (404, "VaultNotFound")
    assert host.partition(".vault")[0] in error(answer)[2]


def test_two_vaults_keep_their_secrets_apart(vault: ArmWorld) -> None:
    vault.call("PUT", f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv-idstack", vault_body())
    vault.vault("PUT", "/secrets/one", {"value": "v"})
    assert vault.vault("GET", "/secrets", host="kv-idstack.vault.azure.net").json()["value"] == []


def test_a_key_operation_needs_a_role_that_grants_it(vault: ArmWorld) -> None:
    path = f"/keys/etcd/{add_key(vault)}"
    crypto, secrets = (
        vault.principal(("Key Vault Crypto User", VAULT)),
        vault.principal(("Key Vault Secrets Officer", VAULT)),
    )
    encrypted = vault.vault("POST", f"{path}/encrypt", ALGORITHMS, caller=crypto).json()
    assert encrypted["kid"] == URI + path
    body = {"alg": "RSA-OAEP-256", "value": encrypted["value"]}
    assert vault.vault("POST", f"{path}/decrypt", body, caller=crypto).json()["value"] == ALGORITHMS["value"]
    refused = [
        vault.vault("POST", f"{path}/{verb}", body, caller=secrets) for verb in ("encrypt", "decrypt", "wrapkey")
    ]
    assert [inner(answer) for answer in refused] == ["ForbiddenByRbac"] * 3


@pytest.mark.parametrize("operation", ["encrypt", "wrapkey"])
def test_a_request_without_a_version_means_the_newest_key(vault: ArmWorld, operation: str) -> None:
    add_key(vault)
    newest = add_key(vault)
    officer = vault.principal(("Key Vault Crypto Officer", VAULT))
    answer = vault.vault("POST", f"/keys/etcd//{operation}", ALGORITHMS, caller=officer)
    assert answer.json()["kid"] == f"{URI}/keys/etcd/{newest}"


@pytest.mark.parametrize(
    ("operation", "body", "text"),
    [
        ("encrypt", {"alg": "RS256", "value": "dGV4dA"}, "RS256"),
        ("encrypt", {"alg": "RSA-OAEP-256"}, "value"),
        ("encrypt", {"alg": "RSA-OAEP-256", "value": "a+b/"}, "base64url"),
        ("encrypt", {"alg": "RSA-OAEP-256", "value": "A" * 400}, "too long"),
        ("decrypt", {"alg": "RSA-OAEP-256", "value": "dGV4dA"}, "does not decrypt"),
        ("encrypt", {"alg": "RSA-OAEP-256", "value": "dGV4dA", "iv": "x"}, "iv"),
    ],
)
def test_a_malformed_key_operation_is_refused(vault: ArmWorld, operation: str, body: dict[str, str], text: str) -> None:
    add_key(vault)
    crypto = vault.principal(("Key Vault Crypto User", VAULT))
    answer = vault.vault("POST", f"/keys/etcd//{operation}", body, caller=crypto)
    assert error(answer)[:2] == (400, "BadParameter")
    assert text in error(answer)[2]


def test_an_absent_key_is_not_found(vault: ArmWorld) -> None:
    crypto = vault.principal(("Key Vault Crypto User", VAULT))
    assert error(vault.vault("GET", "/keys/absent", caller=crypto))[:2] == (404, "KeyNotFound")
    assert error(vault.vault("POST", "/keys/absent//encrypt", ALGORITHMS, caller=crypto))[:2] == (404, "KeyNotFound")


def test_a_key_is_made_and_used(vault: ArmWorld) -> None:
    officer = vault.principal(("Key Vault Crypto Officer", VAULT))
    wanted = {"kty": "RSA", "key_size": 3072, "key_ops": ["encrypt"]}
    first, second = (vault.vault("POST", "/keys/etcd/create", wanted, caller=officer) for _ in range(2))
    kid = second.json()["key"]["kid"]

    assert kid.startswith(f"{URI}/keys/etcd/")
    assert kid != first.json()["key"]["kid"]
    assert len(second.json()["key"]["n"]) == 512, "3072 bits in base64url"
    used = vault.vault("POST", f"{kid.removeprefix(URI)}/encrypt", ALGORITHMS, caller=officer)
    assert used.json()["kid"] == kid
    for wrong in ({"attributes": "enabled"}, {"key_ops": [["encrypt"]]}):
        refused = vault.vault("POST", "/keys/etcd/create", {"kty": "RSA", **wrong}, caller=officer)
        assert error(refused)[:2] == (400, "BadParameter")
    elliptic = vault.vault("POST", "/keys/etcd/create", {"kty": "EC"}, caller=officer)
    assert error(elliptic)[:2] == (501, "NotEmulated")


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/keys/etcd/import"), ("POST", "/certificates/one/merge"), ("POST", "/keys/etcd//sign")],
)
def test_what_is_not_emulated_is_named(vault: ArmWorld, method: str, path: str) -> None:
    answer = vault.vault(method, path, {})
    assert error(answer)[:2] == (501, "NotEmulated")
    assert path in error(answer)[2]


@pytest.mark.parametrize("body", [{}, {"value": 1}, {"value": "v", "attributes": {"exp": "soon"}}, {"val": "v"}])
def test_a_malformed_secret_is_refused(vault: ArmWorld, body: dict[str, object]) -> None:
    assert error(vault.vault("PUT", "/secrets/one", body))[:2] == (400, "BadParameter")


def test_private_keys_and_values_are_sealed_in_the_store(vault: ArmWorld) -> None:
    add_key(vault)
    vault.vault("PUT", "/secrets/one", {"value": "marker-value"})
    kinds = ("arm", "keyvault-secret", "keyvault-key")
    everything = str([document for kind in kinds for document in vault.store.items(kind)])
    assert "marker-value" not in everything
    assert "PRIVATE KEY" not in everything


SECRET = f"{VAULT}/secrets/one"


@pytest.fixture
def with_secret(world: ArmWorld) -> ArmWorld:
    """A world with the stack's vault and one secret in it."""
    world.create_vault()
    world.vault("PUT", "/secrets/one", {"value": "v"})
    return world


def test_a_deleted_secret_comes_back_with_its_value(with_secret: ArmWorld) -> None:
    with_secret.vault("DELETE", "/secrets/one")

    recover(with_secret.cloud, SECRET.upper())

    assert with_secret.vault("GET", "/secrets/one").json()["value"] == "v"


def test_a_deleted_vault_comes_back_with_its_secrets(with_secret: ArmWorld) -> None:
    with_secret.call("DELETE", VAULT)
    assert with_secret.call("GET", VAULT).status_code == 404

    recover(with_secret.cloud, VAULT.lower())

    assert with_secret.vault("GET", "/secrets/one").json()["value"] == "v"


@pytest.mark.parametrize("resource_id", [SECRET, VAULT, f"{VAULT}-2", f"{VAULT}-2/secrets/one"])
def test_what_is_not_deleted_cannot_be_recovered(with_secret: ArmWorld, resource_id: str) -> None:
    with pytest.raises(NotDeletedError, match=resource_id.partition("/secrets/")[0].rpartition("/")[2]):
        recover(with_secret.cloud, resource_id)


@pytest.mark.parametrize("resource_id", ["kv-idstack-local", VAULT.replace("vaults", "keys")])
def test_other_ids_are_refused(with_secret: ArmWorld, resource_id: str) -> None:
    with pytest.raises(ValueError, match=r"is neither|is not a resource id"):
        recover(with_secret.cloud, resource_id)
