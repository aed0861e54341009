"""The infrastructure of a hosted cluster as somebody has made it through ARM, and what a program says of each part."""

from __future__ import annotations

from typing import Any, Final

from localcloud.testing import networks as arm
from localcloud.testing.arm import SUBSCRIPTION
from tests.engine.out_of_band import OutOfBand

_NETWORK: Final = "2024-05-01"
_PRIVATE_DNS: Final = "2024-06-01"
_MANAGED: Final = {"resourceGroupName": "hc1-infra"}
_HERE: Final = {**_MANAGED, "location": "eastus"}
_GLOBAL: Final = {**_MANAGED, "location": "global"}
_POOL: Final = {"id": f"{arm.BALANCER}/backendAddressPools/infra"}
_FRONTEND: Final = {"id": f"{arm.BALANCER}/frontendIPConfigurations/infra"}

# By the part's id: its API version, its type, the program's inputs.
_PARTS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    arm.MANAGED: ("2024-03-01", "resources:ResourceGroup", _HERE),
    arm.SECURITY_GROUP: (
        _NETWORK,
        "network:NetworkSecurityGroup",
        {**_HERE, "networkSecurityGroupName": "hc1-infra-nsg"},
    ),
    arm.VNET: (
        _NETWORK,
        "network:VirtualNetwork",
        {**_HERE, "virtualNetworkName": "hc1-infra", "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
    ),
    arm.SUBNET: (
        _NETWORK,
        "network:Subnet",
        {
            **_MANAGED,
            "virtualNetworkName": "hc1-infra",
            "subnetName": "default",
            "addressPrefix": "10.0.0.0/24",
            "networkSecurityGroup": {"id": arm.SECURITY_GROUP},
        },
    ),
    arm.ADDRESS: (
        _NETWORK,
        "network:PublicIPAddress",
        {
            **_HERE,
            "publicIpAddressName": "infra",
            "publicIPAllocationMethod": "Static",
            "sku": {"name": "Standard"},
        },
    ),
    arm.BALANCER: (
        _NETWORK,
        "network:LoadBalancer",
        {
            **_HERE,
            "loadBalancerName": "infra",
            "sku": {"name": "Standard"},
            "frontendIPConfigurations": [{"name": "infra", "publicIPAddress": {"id": arm.ADDRESS}}],
            "backendAddressPools": [{"name": "infra"}],
            "outboundRules": [
                {
                    "name": "infra",
                    "backendAddressPool": _POOL,
                    "frontendIPConfigurations": [_FRONTEND],
                    "protocol": "All",
                }
            ],
        },
    ),
    arm.ZONE: (_PRIVATE_DNS, "privatedns:PrivateZone", {**_GLOBAL, "privateZoneName": "hc1.example.com"}),
    arm.LINK: (
        _PRIVATE_DNS,
        "privatedns:VirtualNetworkLink",
        {
            **_GLOBAL,
            "privateZoneName": "hc1.example.com",
            "virtualNetworkLinkName": "hc1-infra",
            "virtualNetwork": {"id": arm.VNET},
            "registrationEnabled": False,
        },
    ),
}


def make(somebody: OutOfBand) -> list[dict[str, Any]]:
    """Make all of it; each part as `test_import.py` describes a thing."""
    things = []
    for path, body in arm.ORDERED:
        api_version, word, inputs = _PARTS[path]
        somebody.arm("PUT", path, api_version, body)
        name = f"by-hand-{word.rpartition(':')[2]}"
        things.append({"type": f"azure-native:{word}", "name": name, "id": path, "inputs": inputs})
    return things


def make_egress(somebody: OutOfBand, group: str, name: str) -> None:
    """Make the egress load balancer of another hosted cluster, with its public address."""
    here = f"{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Network"
    address, balancer = f"{here}/publicIPAddresses/{name}", f"{here}/loadBalancers/{name}"
    somebody.arm("PUT", address, _NETWORK, arm.address_body())
    somebody.arm("PUT", balancer, _NETWORK, arm.balancer_body(balancer, address, name))


def remove(somebody: OutOfBand) -> None:
    """Remove all of it."""
    somebody.arm("DELETE", arm.MANAGED, "2024-03-01")
