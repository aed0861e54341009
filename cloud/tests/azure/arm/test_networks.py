"""Resource groups, networks, load balancers and private zones at the local ARM: what Azure does with each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.azure.shared.faults import NO_DELAYS
from localcloud.core import clock
from localcloud.testing.arm import SUBSCRIPTION, ArmWorld, error, vault_body
from localcloud.testing.networks import (
    ADDRESS,
    BALANCER,
    LINK,
    MANAGED,
    NETWORK,
    ORDERED,
    SECURITY_GROUP,
    SUBNET,
    VNET,
    ZONE,
    balancer_body,
    in_eastus,
    link_body,
    make,
    subnet_body,
    vnet_body,
)


@pytest.fixture
def world(world: ArmWorld) -> ArmWorld:
    """With the whole infrastructure of a cluster."""
    make(world)
    return world


def properties(world: ArmWorld, path: str) -> dict[str, Any]:
    """The properties that a GET answers."""
    answer = world.call("GET", path)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["properties"]
    return found


def test_a_second_put_of_each_is_an_update(world: ArmWorld) -> None:
    whole = {**dict(ORDERED), VNET: vnet_body(subnets=[{"name": "default", **subnet_body()}])}
    assert {world.call("PUT", path, body).status_code for path, body in whole.items()} == {200}


def test_each_knows_what_uses_it(world: ArmWorld) -> None:
    frontend = f"{BALANCER}/frontendIPConfigurations/infra"

    assert properties(world, SECURITY_GROUP)["subnets"] == [{"id": SUBNET}]
    assert properties(world, ADDRESS)["ipConfiguration"] == {"id": frontend}
    assert properties(world, ZONE)["numberOfVirtualNetworkLinks"] == 1
    assert [subnet["id"] for subnet in properties(world, VNET)["subnets"]] == [SUBNET]
    [rule] = properties(world, BALANCER)["outboundRules"]
    assert rule["id"] == f"{BALANCER}/outboundRules/infra"


def test_all_of_it_can_be_deleted_from_the_last_to_the_first(world: ArmWorld) -> None:
    codes = [world.call("DELETE", path).status_code for path, _ in reversed(ORDERED)]
    assert codes == [200] * (len(ORDERED) - 1) + [202]
    assert error(world.call("GET", MANAGED))[1] == "ResourceGroupNotFound"


def test_a_put_of_a_network_replaces_its_subnets(world: ArmWorld) -> None:
    world.call("PUT", VNET, vnet_body(subnets=[{"name": "other", **subnet_body("10.0.1.0/24")}]))
    assert [subnet["name"] for subnet in properties(world, VNET)["subnets"]] == ["other"]
    assert world.call("GET", SUBNET).status_code == 404


def test_a_deleted_network_takes_its_links_along(world: ArmWorld) -> None:
    assert world.call("DELETE", VNET).status_code == 200
    assert world.call("GET", LINK).status_code == 404
    assert world.call("DELETE", ZONE).status_code == 200


def test_a_part_that_a_put_of_a_load_balancer_leaves_out_is_gone(world: ArmWorld) -> None:
    frontend = {"frontendIPConfiguration": {"id": f"{BALANCER}/frontendIPConfigurations/infra"}}
    rule = {"name": "added", "properties": {**frontend, "frontendPort": 443, "protocol": "Tcp"}}
    world.call("PUT", BALANCER, balancer_body(loadBalancingRules=[rule]))
    assert [added["name"] for added in properties(world, BALANCER)["loadBalancingRules"]] == ["added"]

    world.call("PUT", BALANCER, balancer_body())

    assert properties(world, BALANCER)["loadBalancingRules"] == []


def test_a_reference_may_lack_its_first_slash(world: ArmWorld) -> None:
    """HyperShift's CLI writes the outbound rule's references so (cmd/infra/azure/networking.go)."""
    outbound = {
        "protocol": "All",
        "backendAddressPool": {"id": f"{BALANCER[1:]}/backendAddressPools/infra"},
        "frontendIPConfigurations": [{"id": f"{BALANCER[1:]}/frontendIPConfigurations/infra"}],
    }
    body = balancer_body(outboundRules=[{"name": "infra", "properties": outbound}])
    assert world.call("PUT", BALANCER, body).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "action"),
    [
        (SUBNET, subnet_body(), "networkSecurityGroups/join/action"),
        (BALANCER, balancer_body(), "publicIPAddresses/join/action"),
        (LINK, link_body(), "virtualNetworks/join/action"),
    ],
    ids=["subnet", "load balancer", "link"],
)
def test_a_writer_must_be_allowed_to_join_what_it_refers_to(
    world: ArmWorld, path: str, body: dict[str, Any], action: str
) -> None:
    owner = world.principal(("Contributor", path))

    status, code, message = error(world.call("PUT", path, body, caller=owner))

    assert (status, code) == (403, "LinkedAuthorizationFailed")
    assert f"'Microsoft.Network/{action}'" in message


@pytest.mark.parametrize("path", [path for path, _ in ORDERED], ids=lambda path: path.rpartition("/")[0][-24:])
def test_a_reader_writes_and_deletes_nothing(world: ArmWorld, path: str) -> None:
    reader = world.principal(("Reader", SUBSCRIPTION))
    body = dict(ORDERED)[path]

    assert world.call("GET", path, caller=reader).status_code == 200
    for method in ("PUT", "DELETE"):
        assert error(world.call(method, path, body, caller=reader))[1] == "AuthorizationFailed"


def test_a_contributor_of_one_group_makes_no_other(world: ArmWorld) -> None:
    inside = world.principal(("Contributor", MANAGED))
    assert world.call("PUT", MANAGED, {"location": "eastus"}, caller=inside).status_code == 200
    other = f"{SUBSCRIPTION}/resourceGroups/other"
    assert error(world.call("PUT", other, {"location": "eastus"}, caller=inside))[1] == "AuthorizationFailed"


def test_the_deletion_of_a_group_ends_later_with_all_that_is_in_it(tmp_path: Path) -> None:
    world = ArmWorld(tmp_path, replace(NO_DELAYS, resource_group_deletion=60.0))
    make(world)
    reader = world.principal()
    world.grant(reader, "Reader", MANAGED)

    accepted = world.call("DELETE", MANAGED)

    assert accepted.status_code == 202
    operation = httpx.URL(accepted.headers["Location"])
    assert operation.host == "management.azure.com"
    assert world.call("GET", operation.path).status_code == 202
    assert properties(world, MANAGED) == {"provisioningState": "Deleting"}
    assert error(world.call("PUT", f"{SECURITY_GROUP}-2", in_eastus()))[1] == "ResourceGroupBeingDeleted"
    assert error(world.call("DELETE", MANAGED))[1] == "ResourceGroupBeingDeleted"
    with clock.moved_ahead(timedelta(seconds=61)):
        assert world.call("GET", operation.path).status_code == 200
        assert world.call("GET", VNET).status_code == 404
        assert [document for _, document in world.store.items("arm", f"{MANAGED.lower()}")] == []
    world.store.close()


def test_a_deleted_group_takes_the_principals_of_its_identities_along(world: ArmWorld) -> None:
    identity = f"{MANAGED}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/one"
    principal = world.call("PUT", identity, {"location": "eastus"}).json()["properties"]["principalId"]

    assert world.call("DELETE", MANAGED).status_code == 202
    assert world.call("GET", identity).status_code == 404

    assert world.cloud.directory.service_principal(principal) is None


def test_a_group_with_a_vault_is_not_deleted_here(world: ArmWorld) -> None:
    vault = f"{MANAGED}/providers/Microsoft.KeyVault/vaults/kv-one"
    assert world.call("PUT", vault, vault_body()).status_code == 201
    assert error(world.call("DELETE", MANAGED))[1] == "NotEmulated"
    assert world.call("GET", vault).status_code == 200


def test_a_group_that_another_one_needs_stays_whole(world: ArmWorld) -> None:
    world.group("elsewhere")
    network = VNET.replace("hc1-infra/providers", "elsewhere/providers")
    world.call("PUT", network, vnet_body())
    world.call("PUT", f"{network}/subnets/default", subnet_body())

    world.call("DELETE", MANAGED)

    assert properties(world, MANAGED) == {"provisioningState": "Succeeded"}
    assert world.call("GET", VNET).status_code == 200


def test_a_property_that_is_not_emulated_is_refused_by_name(world: ArmWorld) -> None:
    answer = world.call("PUT", VNET, vnet_body(dhcpOptions={"dnsServers": ["10.0.0.4"]}))
    assert error(answer)[:2] == (501, "NotEmulated")
    assert "dhcpOptions" in error(answer)[2]
    assert error(world.call("GET", f"{NETWORK}/networkManagers/one"))[1] == "NotEmulated"
