"""Bodies and ids of what the infrastructure of a hosted cluster is made of, as HyperShift's CLI makes it."""

from __future__ import annotations

from typing import Any, Final

from localcloud.testing.arm import SUBSCRIPTION, ArmWorld

MANAGED: Final = f"{SUBSCRIPTION}/resourceGroups/hc1-infra"
NETWORK: Final = f"{MANAGED}/providers/Microsoft.Network"
VNET: Final = f"{NETWORK}/virtualNetworks/hc1-infra"
SUBNET: Final = f"{VNET}/subnets/default"
SECURITY_GROUP: Final = f"{NETWORK}/networkSecurityGroups/hc1-infra-nsg"
ADDRESS: Final = f"{NETWORK}/publicIPAddresses/infra"
BALANCER: Final = f"{NETWORK}/loadBalancers/infra"
ZONE: Final = f"{NETWORK}/privateDnsZones/hc1.example.com"
DISK: Final = f"{MANAGED}/providers/Microsoft.Compute/disks/pvc-1"
INTERFACE: Final = f"{NETWORK}/networkInterfaces/worker-0-nic"
MACHINE: Final = f"{MANAGED}/providers/Microsoft.Compute/virtualMachines/worker-0"
LINK: Final = f"{ZONE}/virtualNetworkLinks/hc1-infra"


def in_eastus(**properties: Any) -> dict[str, Any]:
    """The body of a resource in `eastus`."""
    return {"location": "eastus", "properties": properties}


def vnet_body(*prefixes: str, **properties: Any) -> dict[str, Any]:
    """A network with these ranges, else HyperShift's."""
    return in_eastus(addressSpace={"addressPrefixes": list(prefixes or ("10.0.0.0/16",))}, **properties)


def subnet_body(prefix: str = "10.0.0.0/24", group: str | None = SECURITY_GROUP) -> dict[str, Any]:
    """A subnet with its security group."""
    return {"properties": {"addressPrefix": prefix, **({"networkSecurityGroup": {"id": group}} if group else {})}}


def address_body(sku: str = "Standard", **properties: Any) -> dict[str, Any]:
    """A static public address."""
    return {**in_eastus(publicIPAllocationMethod="Static", **properties), "sku": {"name": sku}}


def balancer_body(
    balancer: str = BALANCER, address: str | None = ADDRESS, name: str = "infra", **parts: Any
) -> dict[str, Any]:
    """The egress load balancer, whose parts have one name; `parts` replace lists of them."""
    frontend = {"publicIPAddress": {"id": address}} if address else {}
    outbound = {
        "backendAddressPool": {"id": f"{balancer}/backendAddressPools/{name}"},
        "frontendIPConfigurations": [{"id": f"{balancer}/frontendIPConfigurations/{name}"}],
        "protocol": "All",
    }
    every: dict[str, Any] = {
        "frontendIPConfigurations": [{"name": name, "properties": frontend}],
        "backendAddressPools": [{"name": name}],
        "outboundRules": [{"name": name, "properties": outbound}],
        **parts,
    }
    return {**in_eastus(**every), "sku": {"name": "Standard"}}


def zone_body(location: str = "global") -> dict[str, Any]:
    """A private zone."""
    return {"location": location}


def link_body(network: str = VNET, *, registers: bool = False) -> dict[str, Any]:
    """A zone's link to a network."""
    return {"location": "global", "properties": {"virtualNetwork": {"id": network}, "registrationEnabled": registers}}


def record_body(*addresses: str, ttl: int = 30) -> dict[str, Any]:
    """An A record of a private zone, as the ingress operator writes it."""
    return {"properties": {"ttl": ttl, "aRecords": [{"ipv4Address": address} for address in addresses]}}


def disk_body(**changes: Any) -> dict[str, Any]:
    """An empty disk of 4 GiB, as the disk driver makes it."""
    properties = {"creationData": {"createOption": "Empty"}, "diskSizeGB": changes.pop("size", 4), **changes}
    return {**in_eastus(**properties), "sku": {"name": "Premium_LRS"}, "zones": ["1"]}


def interface_body(*addresses: str) -> dict[str, Any]:
    """An interface with these addresses, else one of Azure's choice."""
    chosen: list[dict[str, Any]] = [{"privateIPAddress": address} for address in addresses] or [{}]
    return in_eastus(
        ipConfigurations=[
            {"name": f"pipConfig{number}", "properties": {"subnet": {"id": SUBNET}, **address}}
            for number, address in enumerate(chosen)
        ]
    )


def machine_body(interface: str = INTERFACE, **properties: Any) -> dict[str, Any]:
    """A machine, as the Cluster API provider makes it."""
    network = {"networkInterfaces": [{"id": interface, "properties": {"primary": True}}]}
    return in_eastus(hardwareProfile={"vmSize": "Standard_D4s_v3"}, networkProfile=network, **properties)


def attached(*disks: str, **changes: Any) -> dict[str, Any]:
    """The body that attaches disks to a machine, as the disk driver writes it."""
    listed = [
        {"lun": lun, "createOption": "Attach", "managedDisk": {"id": disk}, **changes} for lun, disk in enumerate(disks)
    ]
    return in_eastus(storageProfile={"dataDisks": listed})


ORDERED: Final = (
    (MANAGED, {"location": "eastus"}),
    (SECURITY_GROUP, in_eastus()),
    (VNET, vnet_body()),
    (SUBNET, subnet_body()),
    (ADDRESS, address_body()),
    (BALANCER, balancer_body()),
    (ZONE, zone_body()),
    (LINK, link_body()),
)


def make(world: ArmWorld) -> None:
    """Make all of it, in an order in which nothing refers to what is not there."""
    for path, body in ORDERED:
        answer = world.call("PUT", path, body)
        assert answer.status_code == 201, answer.text
