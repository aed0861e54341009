"""A request for each refusal of resource groups and networks that `COVERAGE.md` lists, by its case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from localcloud.testing.arm import SUBSCRIPTION
from localcloud.testing.networks import (
    ADDRESS,
    BALANCER,
    DISK,
    INTERFACE,
    LINK,
    MACHINE,
    MANAGED,
    NETWORK,
    SECURITY_GROUP,
    SUBNET,
    VNET,
    ZONE,
    address_body,
    attached,
    balancer_body,
    disk_body,
    in_eastus,
    interface_body,
    link_body,
    machine_body,
    make,
    record_body,
    subnet_body,
    vnet_body,
    zone_body,
)
from tests.coverage.cloud import CoverageCloud, Provoke, after, call

_OTHER: Final = f"{VNET}/subnets/other"
_SECOND_ZONE: Final = f"{NETWORK}/privateDnsZones/hc2.example.com"
_ELSEWHERE: Final = f"{SUBSCRIPTION}/resourceGroups/elsewhere"
_ZONE_ELSEWHERE: Final = ZONE.replace(MANAGED, _ELSEWHERE)
_REGISTERED: Final = link_body(registers=True)
_MACHINE: Final = ((INTERFACE, interface_body()), (MACHINE, machine_body()))
_ATTACHED: Final = (*_MACHINE, (DISK, disk_body()), (MACHINE, attached(DISK)))


def _refused(method: str, path: str, body: object = None, *before: tuple[str, object]) -> Provoke:
    """A request after the whole infrastructure was made, and `before` written."""
    return after(make, *(call("PUT", *write) for write in before), then=call(method, path, body))


def _being_deleted(cloud: CoverageCloud) -> httpx.Response:
    make(cloud)
    cloud.put(MANAGED, "Microsoft.Resources/resourceGroups", {"provisioningState": "Deleting"})
    return cloud.call("PUT", VNET, vnet_body())


def _blocked(cloud: CoverageCloud) -> httpx.Response:
    make(cloud)
    cloud.group("elsewhere")
    network = VNET.replace("hc1-infra/providers", "elsewhere/providers")
    assert cloud.call("PUT", network, vnet_body()).status_code == 201
    assert cloud.call("PUT", f"{network}/subnets/default", subnet_body()).status_code == 201
    accepted = cloud.call("DELETE", MANAGED)
    return cloud.call("GET", httpx.URL(accepted.headers["Location"]).path)


def _outbound(**properties: Any) -> dict[str, Any]:
    return balancer_body(outboundRules=[{"name": "infra", "properties": properties}])


_NO_POOL: Final = {"backendAddressPool": {"id": f"{BALANCER}/backendAddressPools/none"}}

_RULE: Final = {"protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 100}
_RANGE: Final = {"addressPrefix": "10.0.0.0/24"}

NETWORK_REFUSALS: Final[Mapping[str, Provoke]] = {
    "write in a group that is being deleted": _being_deleted,
    "group in another location": _refused("PUT", MANAGED, {"location": "westus"}),
    "resource group's name": _refused("PUT", f"{SUBSCRIPTION}/resourceGroups/dot.", {"location": "eastus"}),
    "deletion of a group that another one needs": _blocked,
    "name of a network resource": _refused("PUT", f"{SECURITY_GROUP}-", in_eastus()),
    "network without addresses": _refused("PUT", VNET, in_eastus()),
    "range that is none": _refused("PUT", _OTHER, subnet_body("10.0.1.0")),
    "subnet outside of its network": _refused("PUT", _OTHER, subnet_body("10.1.0.0/24")),
    "subnets that overlap": _refused("PUT", _OTHER, subnet_body("10.0.0.128/25")),
    "reference to nothing": _refused(
        "PUT",
        BALANCER,
        _outbound(**_NO_POOL, frontendIPConfigurations=[{"id": f"{BALANCER}/frontendIPConfigurations/infra"}]),
    ),
    "deletion of a subnet in use": _refused("DELETE", SUBNET, None, *_MACHINE),
    "deletion of an interface in use": _refused("DELETE", INTERFACE, None, *_MACHINE),
    "address of two interfaces": _refused("PUT", f"{INTERFACE}-2", interface_body("10.0.0.4"), *_MACHINE),
    "machine without a network": _refused("PUT", MACHINE, in_eastus(hardwareProfile={})),
    "deletion of an attached disk": _refused("DELETE", DISK, None, *_ATTACHED),
    "disk of another machine": _refused(
        *("PUT", f"{MACHINE}-2", attached(DISK)),
        *_ATTACHED,
    ),
    "disk that is not there": _refused("PUT", MACHINE, attached(DISK), *_MACHINE),
    "deletion of a security group in use": _refused("DELETE", SECURITY_GROUP),
    "deletion of a public address in use": _refused("DELETE", ADDRESS),
    "standard address that is not static": _refused(
        "PUT", f"{ADDRESS}-2", {**in_eastus(publicIPAllocationMethod="Dynamic"), "sku": {"name": "Standard"}}
    ),
    "idle timeout out of range": _refused("PUT", f"{ADDRESS}-2", address_body(idleTimeoutInMinutes=3)),
    "frontend without an address": _refused("PUT", BALANCER, balancer_body(address=None)),
    "SKUs that differ": _refused(
        *("PUT", f"{BALANCER}-2", balancer_body(f"{BALANCER}-2", f"{ADDRESS}-2")),
        (f"{ADDRESS}-2", address_body("Basic")),
    ),
    "public address of two load balancers": _refused("PUT", f"{BALANCER}-2", balancer_body(f"{BALANCER}-2")),
    "outbound rule without a frontend": _refused("PUT", BALANCER, _outbound(**_NO_POOL)),
    "zone's name": _refused("PUT", f"{NETWORK}/privateDnsZones/example", zone_body()),
    "zone that is not global": _refused("PUT", _SECOND_ZONE, zone_body("eastus")),
    "deletion of a zone with links": _refused("DELETE", ZONE),
    "link to nothing": _refused("PUT", LINK, {"location": "global", "properties": {}}),
    "network linked twice to a zone": _refused("PUT", f"{LINK}-2", link_body()),
    "network linked to two zones of a name": _refused(
        *("PUT", f"{_ZONE_ELSEWHERE}/virtualNetworkLinks/one", link_body()),
        *((_ELSEWHERE, {"location": "eastus"}), (_ZONE_ELSEWHERE, zone_body())),
    ),
    "network that registers in two zones": _refused(
        *("PUT", f"{_SECOND_ZONE}/virtualNetworkLinks/one", _REGISTERED),
        *((LINK, _REGISTERED), (_SECOND_ZONE, zone_body())),
    ),
    "link to another network": _refused("PUT", LINK, link_body(f"{VNET}-2"), (f"{VNET}-2", vnet_body())),
    "name of a record": _refused("PUT", f"{ZONE}/A/a..b", record_body("10.0.0.4")),
    "lifetime of a record": _refused("PUT", f"{ZONE}/A/api", record_body("10.0.0.4", ttl=0)),
    "record without an address": _refused("PUT", f"{ZONE}/A/api", record_body("10.0.0")),
    "disk without a size": _refused("PUT", DISK, in_eastus(creationData={"createOption": "Empty"})),
    "network's property of another JSON type": _refused("PUT", SECURITY_GROUP, in_eastus(securityRules={})),
    "security rule without a parameter": _refused(
        "PUT", SECURITY_GROUP, in_eastus(securityRules=[{"name": "in", "properties": {"protocol": "Tcp"}}])
    ),
    "security rule without a source": _refused(
        "PUT", SECURITY_GROUP, in_eastus(securityRules=[{"name": "in", "properties": _RULE}])
    ),
    "load balancer's part without a member": _refused(
        "PUT", BALANCER, balancer_body(probes=[{"name": "up", "properties": {"port": 80}}])
    ),
    "subnet's reference without an id": _refused("PUT", SUBNET, {"properties": {"routeTable": {}, **_RANGE}}),
    "two parts of one name": _refused(
        "PUT", BALANCER, balancer_body(backendAddressPools=[{"name": "infra"}, {"name": "infra"}])
    ),
    "copy of a disk that is not there": _refused(
        "PUT", DISK, in_eastus(creationData={"createOption": "Copy", "sourceResourceId": DISK})
    ),
}
