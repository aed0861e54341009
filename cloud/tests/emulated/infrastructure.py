"""Inputs of the types that a hosted cluster's infrastructure is made of, as the program gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emulated.azure_native.provider import AzureNative
from localcloud.testing.plugin_calls import create
from plugin import Created, Props

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
