"""Each identity's own roles grant its proof call and refuse what no role of it grants: `proof_calls.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from localcloud.azure.arm.path import parse
from localcloud.azure.keyvault.keys import Keys
from localcloud.azure.keyvault.secrets import Vaults
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.arm import SUBSCRIPTION, ArmWorld, error, vault_body

TABLES: Final[Any] = yaml.safe_load(Path(__file__).with_name("proof_calls.yaml").read_text(encoding="utf-8"))
AT: Final = {name: f"{SUBSCRIPTION}/resourceGroups/{place['at']}" for name, place in TABLES["places"].items()}
KEY_VERSION = "0123456789abcdef0123456789abcdef"
HOST = "kv-etcd.vault.azure.net"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArmWorld]:
    """The groups, network, zone and key of a hosted cluster; the tests here only add principals."""
    world = ArmWorld(tmp_path_factory.mktemp("azure"))
    for name, place in TABLES["places"].items():
        if "/" not in place["at"]:
            world.group(place["at"])
        if "properties" in place:
            world.put(AT[name], parse(AT[name], "PUT").type, place["properties"])
    assert world.call("PUT", AT["etcd"], vault_body()).status_code == 201
    vault = Vaults(world.resources).named("kv-etcd")
    assert vault is not None
    Keys(world.store).add(vault, "etcd", version=KEY_VERSION)
    yield world
    world.store.close()


def identity(world: ArmWorld, name: str, roles: str = "hypershift", without: str | None = None) -> ServicePrincipal:
    role, *scopes = TABLES[roles][name]
    return world.principal(*((role, AT[scope]) for scope in scopes if scope != without))


@pytest.mark.parametrize(
    ("roles", "name", "path", "version"),
    [
        *(("hypershift", *call) for call in TABLES["granted"]),
        *(("production", *call) for call in TABLES["granted"]),
        ("production", "imageRegistry", "subnet", "2023-05-01"),
    ],
)
def test_an_identitys_own_role_grants_its_call(
    environment: ArmWorld, roles: str, name: str, path: str, version: str
) -> None:
    answer = environment.call("GET", AT[path], caller=identity(environment, name, roles), version=version)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("name", "path"),
    [
        *((name, path) for name in TABLES["production"] for path in ("otherVnet", "otherSecurityGroup", "vnets")),
        *((name, path) for name in TABLES["production"] for path in ("network", "nsg")),
        ("cloudProvider", "otherSubnet"),
        ("ingress", "otherSubnet"),
    ],
)
def test_productions_role_grants_nothing_beside_its_resources(environment: ArmWorld, name: str, path: str) -> None:
    answer = environment.call("GET", AT[path], caller=identity(environment, name, "production"))
    assert error(answer)[:2] == (403, "AuthorizationFailed")


@pytest.mark.parametrize("missing", [None, "securityGroup", "routes", "nat"])
@pytest.mark.parametrize("name", ["cloudProvider", "file"])
def test_a_writer_of_the_subnet_may_join_all_that_it_refers_to(
    environment: ArmWorld, name: str, missing: str | None
) -> None:
    caller = identity(environment, name, "production", without=missing)
    references = {"networkSecurityGroup": "securityGroup", "routeTable": "routes", "natGateway": "nat"}
    properties = {"addressPrefix": "10.0.0.0/24"} | {key: {"id": AT[place]} for key, place in references.items()}

    answer = environment.call("PUT", AT["subnet"], {"properties": properties}, caller=caller)

    if missing is None:
        assert answer.status_code == 200, answer.text
    else:
        assert error(answer)[:2] == (403, "LinkedAuthorizationFailed")
        assert AT[missing] in answer.text


@pytest.mark.parametrize(("name", "path", "type_name", "scope"), TABLES["refused"])
def test_a_call_that_no_role_grants_is_refused_in_azures_words(
    environment: ArmWorld, name: str, path: str, type_name: str, scope: str
) -> None:
    caller = identity(environment, name)
    answer = environment.call("GET", AT[path], caller=caller)
    assert error(answer) == (
        403,
        "AuthorizationFailed",
        f"The client '{caller.object_id}' with object id '{caller.object_id}' does not have authorization to perform "
        f"action 'Microsoft.{type_name}/read' over scope '{AT[scope]}' or the scope is invalid. If access was recently "
        "granted, please refresh your credentials.",
    )


@pytest.mark.parametrize("name", TABLES["hypershift"])
def test_the_key_encrypts_for_kms_alone_and_nobody_reads_a_secret(environment: ArmWorld, name: str) -> None:
    caller, body = identity(environment, name), {"alg": "RSA-OAEP-256", "value": "dGV4dA"}
    path = f"/keys/etcd/{KEY_VERSION}/encrypt"
    encrypted = environment.vault("POST", path, body, caller=caller, host=HOST)
    environment.vault("PUT", "/secrets/one", {"value": "v"}, host=HOST)
    assert encrypted.status_code == (200 if name == "kms" else 403), encrypted.text
    assert error(environment.vault("GET", "/secrets/one", caller=caller, host=HOST))[:2] == (403, "Forbidden")


def test_the_network_answers_with_its_subnets(environment: ArmWorld) -> None:
    answer = environment.call("GET", AT["vnet"], caller=identity(environment, "network"))
    assert [subnet["name"] for subnet in answer.json()["properties"]["subnets"]] == ["default", "other"]
