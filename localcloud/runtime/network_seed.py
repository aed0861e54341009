"""The infrastructure of the hosted cluster of `Pulumi.local.yaml`, as HyperShift's CLI would have made it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from localcloud.core.arm_ids import resource_id

NETWORK_GROUP: Final = "hc1-network"
SECURITY_GROUP: Final = "hc1-nsg"
DNS_GROUP: Final = "dns-local"
MANAGED_GROUP: Final = "hc1-managed"
DOMAIN: Final = "local.example.com"
_INFRA_ID: Final = "hc1-infra"
_LINK: Final = "hc1-hc1-infra"
_STANDARD: Final = {"name": "Standard", "tier": "Regional"}


@dataclass(frozen=True)
class SeededResource:
    """A document of ARM; `location` is None for a child of a network, `sku` for a type without one."""

    id: str
    type: str
    properties: dict[str, Any]
    location: str | None
    sku: dict[str, str] | None = None


def infrastructure(subscription: str, location: str) -> Iterator[SeededResource]:
    """All of it, in an order in which nothing refers to what is not there."""

    def named(group: str, word: str, *names: str) -> tuple[str, str]:
        kind = f"Microsoft.Network/{word}"
        return resource_id(subscription, group, kind, *names), kind

    vnet, networks = named(NETWORK_GROUP, "virtualNetworks", "hc1-vnet")
    nsg, groups = named(SECURITY_GROUP, "networkSecurityGroups", "hc1-nsg")
    zone, zones = named(MANAGED_GROUP, "privateDnsZones", DOMAIN)
    address, addresses = named(MANAGED_GROUP, "publicIPAddresses", _INFRA_ID)
    balancer, balancers = named(MANAGED_GROUP, "loadBalancers", _INFRA_ID)
    public, dns_zones = named(DNS_GROUP, "dnsZones", DOMAIN)
    space = {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "virtualNetworkPeerings": []}
    subnet = {"addressPrefix": "10.0.0.0/24", "networkSecurityGroup": {"id": nsg}}
    link = {"virtualNetwork": {"id": vnet}, "registrationEnabled": False, "virtualNetworkLinkState": "Completed"}
    static = {"publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Static", "ipAddress": "203.0.113.1"}
    yield SeededResource(vnet, networks, _succeeded(space), location)
    yield SeededResource(nsg, groups, _succeeded({"securityRules": []}), location)
    yield SeededResource(f"{vnet}/subnets/default", f"{networks}/subnets", _succeeded(subnet), None)
    yield SeededResource(public, dns_zones, {"zoneType": "Public"}, "global")
    yield SeededResource(zone, zones, _succeeded({}), "global")
    links = f"{zones}/virtualNetworkLinks"
    yield SeededResource(f"{zone}/virtualNetworkLinks/{_LINK}", links, _succeeded(link), "global")
    yield SeededResource(address, addresses, _succeeded(static), location, _STANDARD)
    yield SeededResource(balancer, balancers, _succeeded(_egress(balancer, address)), location, _STANDARD)


def _egress(balancer: str, address: str) -> dict[str, Any]:
    """The parts of the egress load balancer (openshift/hypershift cmd/infra/azure/networking.go:466-492)."""

    def part(key: str, properties: dict[str, Any]) -> dict[str, Any]:
        kind = f"Microsoft.Network/loadBalancers/{key}"
        full_id = f"{balancer}/{key}/{_INFRA_ID}"
        return {"name": _INFRA_ID, "id": full_id, "type": kind, "properties": _succeeded(properties)}

    frontend = part("frontendIPConfigurations", {"publicIPAddress": {"id": address}})
    pool = part("backendAddressPools", {})
    way_out = {"backendAddressPool": {"id": pool["id"]}, "frontendIPConfigurations": [{"id": frontend["id"]}]}
    return {
        "frontendIPConfigurations": [frontend],
        "backendAddressPools": [pool],
        "probes": [part("probes", {"protocol": "Http", "port": 30595, "requestPath": "/healthz"})],
        "outboundRules": [part("outboundRules", {**way_out, "protocol": "All"})],
        "loadBalancingRules": [],
    }


def _succeeded(properties: dict[str, Any]) -> dict[str, Any]:
    return {**properties, "provisioningState": "Succeeded"}
