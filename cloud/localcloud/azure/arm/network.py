"""Microsoft.Network: the networks of hosted clusters, seeded or created by a stack."""

from __future__ import annotations

from localcloud.azure.arm.load_balancer import LoadBalancers, PublicIPAddresses
from localcloud.azure.arm.network_rules import INTERFACES, NAT_GATEWAYS, ROUTE_TABLES
from localcloud.azure.arm.private_dns import PrivateDnsZones, VirtualNetworkLinks
from localcloud.azure.arm.resource_type import ResourceType, SeededType
from localcloud.azure.arm.virtual_network import NetworkSecurityGroups, Subnets, VirtualNetworks


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (
        VirtualNetworks(),
        Subnets(),
        NetworkSecurityGroups(),
        SeededType(INTERFACES),
        SeededType(ROUTE_TABLES),
        SeededType(NAT_GATEWAYS),
        SeededType("Microsoft.Network/dnsZones"),
        PublicIPAddresses(),
        LoadBalancers(),
        PrivateDnsZones(),
        VirtualNetworkLinks(),
    )
