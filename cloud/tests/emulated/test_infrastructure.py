"""azure-native's infrastructure types against the running local cloud: bodies, arrays of their own, polled deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from emulated.azure_native.provider import AzureNative
from localcloud.testing.plugins import checked, create, delete, read, refresh, update, urn
from plugin import Created, PluginError, Props

# Inputs of the types that a hosted cluster's infrastructure is made of, as the program gives them.

GROUP: Final = "azure-native:resources:ResourceGroup"
NETWORK: Final = "azure-native:network:VirtualNetwork"
SUBNET: Final = "azure-native:network:Subnet"
SECURITY_GROUP: Final = "azure-native:network:NetworkSecurityGroup"
ADDRESS: Final = "azure-native:network:PublicIPAddress"
BALANCER: Final = "azure-native:network:LoadBalancer"
ZONE: Final = "azure-native:privatedns:PrivateZone"
LINK: Final = "azure-native:privatedns:VirtualNetworkLink"
INFRASTRUCTURE: Final = (GROUP, NETWORK, SUBNET, SECURITY_GROUP, ADDRESS, BALANCER, ZONE, LINK)

_HERE: Final[Props] = {"resourceGroupName": "identity-local", "location": "eastus"}
_GLOBAL: Final[Props] = {**_HERE, "location": "global"}


def infrastructure_inputs(plugin: AzureNative, token: str, unique: Callable[[str], str]) -> Props:
    """The least that the type needs; what it refers to is made on the way."""

    def made(needed: str) -> tuple[Props, Created]:
        return create(plugin, needed, infrastructure_inputs(plugin, needed, unique))

    if token == GROUP:
        return {"resourceGroupName": unique("group"), "location": "eastus"}
    if token == NETWORK:
        return {**_HERE, "virtualNetworkName": unique("vnet"), "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}
    if token == SECURITY_GROUP:
        return {**_HERE, "networkSecurityGroupName": unique("nsg")}
    if token == ADDRESS:
        standard = {"sku": {"name": "Standard"}, "publicIPAllocationMethod": "Static"}
        return {**_HERE, "publicIpAddressName": unique("address"), **standard}
    if token == ZONE:
        return {**_GLOBAL, "privateZoneName": f"{unique('hc')}.example.com"}
    if token == SUBNET:
        network, _ = made(NETWORK)
        _, group = made(SECURITY_GROUP)
        within = {"resourceGroupName": "identity-local", "virtualNetworkName": network["virtualNetworkName"]}
        return {
            **within,
            "subnetName": "default",
            "addressPrefix": "10.0.0.0/24",
            "networkSecurityGroup": {"id": group.id},
        }
    if token == BALANCER:
        _, address = made(ADDRESS)
        frontend = {"name": "infra", "publicIPAddress": {"id": address.id}}
        names = {"loadBalancerName": unique("balancer"), "sku": {"name": "Standard"}}
        return {
            **_HERE,
            **names,
            "frontendIPConfigurations": [frontend],
            "backendAddressPools": [{"name": "infra"}],
            "probes": [{"name": "infra", "protocol": "Http", "port": 30595, "requestPath": "/healthz"}],
        }
    zone, _ = made(ZONE)
    _, network_made = made(NETWORK)
    names = {"privateZoneName": zone["privateZoneName"], "virtualNetworkLinkName": unique("link")}
    return {**_GLOBAL, **names, "virtualNetwork": {"id": network_made.id}, "registrationEnabled": False}


Unique = Callable[[str], str]


@pytest.mark.parametrize("token", INFRASTRUCTURE, ids=lambda token: token.rpartition(":")[2])
def test_a_read_right_after_the_creation_changes_nothing(azure_native: AzureNative, token: str, unique: Unique) -> None:
    inputs, created = create(azure_native, token, infrastructure_inputs(azure_native, token, unique))

    found = refresh(azure_native, token, inputs, created)

    assert found.inputs == inputs
    assert found.state == created.state
    delete(azure_native, token, inputs, created)
    assert read(azure_native, token, inputs, created) is None


def test_the_parts_of_a_load_balancer_come_back_as_the_sdk_shows_them(
    azure_native: AzureNative, unique: Unique
) -> None:
    _, created = create(azure_native, BALANCER, infrastructure_inputs(azure_native, BALANCER, unique))

    [probe], [frontend] = created.state["probes"], created.state["frontendIPConfigurations"]

    assert (probe["port"], probe["requestPath"], probe["id"]) == (30595, "/healthz", f"{created.id}/probes/infra")
    assert "/publicIPAddresses/" in frontend["publicIPAddress"]["id"]


def test_an_update_of_a_network_leaves_its_subnets_alone(azure_native: AzureNative, unique: Unique) -> None:
    inputs, created = create(azure_native, NETWORK, infrastructure_inputs(azure_native, NETWORK, unique))
    name = {"resourceGroupName": "identity-local", "virtualNetworkName": inputs["virtualNetworkName"]}
    subnet = create(azure_native, SUBNET, {**name, "subnetName": "default", "addressPrefix": "10.0.0.0/24"})
    tagged = checked(azure_native, NETWORK, {**inputs, "tags": {"a": "b"}})

    updated = update(azure_native, NETWORK, inputs, created, tagged)

    assert [listed["name"] for listed in updated["subnets"]] == ["default"]
    assert read(azure_native, SUBNET, *subnet) is not None


def test_a_refresh_of_a_network_does_not_take_its_subnets_over(azure_native: AzureNative, unique: Unique) -> None:
    inputs, created = create(azure_native, NETWORK, infrastructure_inputs(azure_native, NETWORK, unique))
    name = {"resourceGroupName": "identity-local", "virtualNetworkName": inputs["virtualNetworkName"]}
    create(azure_native, SUBNET, {**name, "subnetName": "default", "addressPrefix": "10.0.0.0/24"})

    found = refresh(azure_native, NETWORK, inputs, created)

    assert found.inputs == inputs


def test_the_deletion_of_a_group_is_awaited_with_all_that_is_in_it(azure_native: AzureNative, unique: Unique) -> None:
    inputs, created = create(azure_native, GROUP, infrastructure_inputs(azure_native, GROUP, unique))
    within = {**infrastructure_inputs(azure_native, NETWORK, unique), "resourceGroupName": inputs["resourceGroupName"]}
    network = create(azure_native, NETWORK, within)

    delete(azure_native, GROUP, inputs, created)

    assert read(azure_native, GROUP, inputs, created) is None
    assert read(azure_native, NETWORK, *network) is None


def test_what_arm_refuses_to_delete_is_an_error_with_arms_words(azure_native: AzureNative, unique: Unique) -> None:
    inputs, created = create(azure_native, LINK, infrastructure_inputs(azure_native, LINK, unique))
    zone = created.id.rpartition("/virtualNetworkLinks/")[0]
    token = "azure-native:privatedns:PrivateZone"

    with pytest.raises(PluginError, match="CannotDeleteResource"):
        azure_native.resource(token).delete(urn(token), zone, inputs, {})
