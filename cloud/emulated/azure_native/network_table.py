"""The rows of a hosted cluster's infrastructure: groups, networks, load balancers, private DNS zones.

Sources: `provider/pkg/gen/replacement.go` of pulumi/pulumi-azure-native (PublicIPAddress, VirtualNetwork,
ResourceGroup), and `x-ms-mutability` of `location` in privatedns.json 2024-06-01. A load balancer's or security group's
changed location is an update, which ARM refuses. The SDK's documentation names the arrays that are resources of their
own.
"""

from __future__ import annotations

from typing import Final

from emulated.azure_native.rows import IN_A_GROUP, FunctionRow, ResourceRow

_NETWORK: Final = "2024-05-01"
_PRIVATE_DNS: Final = "2024-06-01"
_RESOURCES: Final = "2024-03-01"
_NETWORKS: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/virtualNetworks/{{virtualNetworkName}}"
_SUBNETS: Final = f"{_NETWORKS}/subnets/{{subnetName}}"
_GROUPS: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/networkSecurityGroups/{{networkSecurityGroupName}}"
_BALANCERS: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/loadBalancers/{{loadBalancerName}}"
_ADDRESSES: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/publicIPAddresses/{{publicIpAddressName}}"
_ZONES: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/privateDnsZones/{{privateZoneName}}"
_LINKS: Final = f"{_ZONES}/virtualNetworkLinks/{{virtualNetworkLinkName}}"

NETWORK_RESOURCES: Final = (
    ResourceRow(
        token="azure-native:resources:ResourceGroup",
        api_version=_RESOURCES,
        path=IN_A_GROUP,
        force_new=frozenset({"location"}),
    ),
    ResourceRow(
        token="azure-native:network:VirtualNetwork",
        api_version=_NETWORK,
        path=_NETWORKS,
        force_new=frozenset({"location"}),
        sub_resources=(("subnets",), ("virtualNetworkPeerings",)),
    ),
    ResourceRow(
        token="azure-native:network:Subnet",
        api_version=_NETWORK,
        path=_SUBNETS,
    ),
    ResourceRow(
        token="azure-native:network:NetworkSecurityGroup",
        api_version=_NETWORK,
        path=_GROUPS,
        sub_resources=(("securityRules",),),
    ),
    ResourceRow(
        token="azure-native:network:PublicIPAddress",
        api_version=_NETWORK,
        path=_ADDRESSES,
        force_new=frozenset({"location", "publicIPAddressVersion", "publicIPPrefix", "sku"}),
    ),
    ResourceRow(
        token="azure-native:network:LoadBalancer",
        api_version=_NETWORK,
        path=_BALANCERS,
        sub_resources=(("backendAddressPools",), ("inboundNatRules",)),
    ),
    ResourceRow(
        token="azure-native:privatedns:PrivateZone",
        api_version=_PRIVATE_DNS,
        path=_ZONES,
        force_new=frozenset({"location"}),
    ),
    ResourceRow(
        token="azure-native:privatedns:VirtualNetworkLink",
        api_version=_PRIVATE_DNS,
        path=_LINKS,
        force_new=frozenset({"location"}),
    ),
)

_function: Final = FunctionRow.of
NETWORK_FUNCTIONS: Final = (
    _function("resources", "getResourceGroup", _RESOURCES, IN_A_GROUP),
    _function("network", "getVirtualNetwork", _NETWORK, _NETWORKS),
    _function("network", "getSubnet", _NETWORK, _SUBNETS),
    _function("network", "getNetworkSecurityGroup", _NETWORK, _GROUPS),
    _function("network", "getLoadBalancer", _NETWORK, _BALANCERS),
    _function("privatedns", "getPrivateZone", _PRIVATE_DNS, _ZONES),
    _function("privatedns", "getVirtualNetworkLink", _PRIVATE_DNS, _LINKS),
)
