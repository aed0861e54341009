"""Microsoft.Network: virtual networks, their subnets, and network security groups.

A PUT of a network replaces its subnets by those in the body; a subnet can be written by itself as well. Left out:
peerings, DHCP options, delegations, service endpoints, IPv6, the evaluation of security rules. Everything is created
at once.
"""

from __future__ import annotations

import re
import uuid
from ipaddress import IPv4Network
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.network_rules import (
    NAME,
    NAT_GATEWAYS,
    ROUTE_TABLES,
    SECURITY_GROUPS,
    SUBNETS,
    VIRTUAL_NETWORKS,
    check_name,
    network,
    reference,
    referenced,
    subscription_resources,
    users_of_subnet,
)
from localcloud.azure.arm.private_dns import links_to
from localcloud.azure.arm.resource_type import TRACKED, Call, WrittenType
from localcloud.azure.resource_store import public
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.understood import Members, Understood
from localcloud.core.store import Document

_NETWORK_NAME: Final = re.compile(r"[a-zA-Z0-9][\w.-]{0,62}\w", re.ASCII)
_ATTACHED: Final = {"networkSecurityGroup": SECURITY_GROUPS, "routeTable": ROUTE_TABLES, "natGateway": NAT_GATEWAYS}
# Further members of an answer, which a client may send back.
_ANSWERED: Final = dict.fromkeys(("provisioningState", "resourceGuid", "subnets", "defaultSecurityRules"))
# The two policies' defaults since 2023 (azure-docs `private-link/disable-private-endpoint-network-policy`).
_POLICIES: Final = {"privateEndpointNetworkPolicies": "Disabled", "privateLinkServiceNetworkPolicies": "Enabled"}
_SUBNET: Final[Members] = {
    "id": None,
    "name": None,
    "type": None,
    "etag": None,
    "properties": {
        **dict.fromkeys(("addressPrefix", "addressPrefixes", *_POLICIES)),
        **_ANSWERED,
        **{member: {"id": None} for member in _ATTACHED},
    },
}
_NETWORK: Final[Members] = {
    **dict.fromkeys(("virtualNetworkPeerings", "enableDdosProtection", "enableVmProtection")),
    **_ANSWERED,
    "addressSpace": {"addressPrefixes": None},
    "subnets": _SUBNET,
}
_GROUP: Final[Members] = {"securityRules": None, "flushConnection": None, **_ANSWERED}


class VirtualNetworks(WrittenType):
    """Virtual networks; the answer carries the subnets."""

    name = VIRTUAL_NETWORKS
    reads = MappingProxyType({"PUT": Understood.of(body={**TRACKED, "properties": _NETWORK})})

    async def put(self, call: Call) -> Response:
        resource, current = self.envelope(call, tracked=True), call.current
        check_name(call.path.name, _NETWORK_NAME)
        properties = call.properties
        if properties.get("virtualNetworkPeerings"):
            raise errors.not_emulated(f"peerings of {self.name}")
        prefixes = (properties.get("addressSpace") or {}).get("addressPrefixes") or []
        if not prefixes:
            raise errors.bad_request(f"The address space of the virtual network '{call.path.name}' is empty.")
        for prefix in prefixes:
            network(prefix, resource["id"])
        guid = current["properties"]["resourceGuid"] if current else str(uuid.uuid4())
        kept = {
            "addressSpace": {"addressPrefixes": prefixes},
            "enableDdosProtection": properties.get("enableDdosProtection", False),
            "virtualNetworkPeerings": [],
            "resourceGuid": guid,
            "provisioningState": "Succeeded",
        }
        with call.cloud.store.transaction():
            call.resources.put({**resource, "properties": kept})
            self._replace_subnets(call, resource["id"], properties.get("subnets") or [])
        return JSONResponse(self.present(call, self.existing(call)), status_code=200 if current else 201)

    def before_deletion(self, call: Call, resource: Document) -> None:
        for subnet in call.resources.below(resource["id"], SUBNETS):
            _refuse_used_subnet(call, subnet)
        # azure-docs `dns/private-dns-virtual-network-links`: a deleted network's links are deleted with it.
        for link in list(links_to(call, resource["id"])):
            call.resources.delete(link["id"])

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        subnets = [public(subnet) for subnet in call.resources.below(resource["id"], SUBNETS)]
        return {**public(resource), "properties": {**resource["properties"], "subnets": subnets}}

    def _replace_subnets(self, call: Call, network_id: str, wanted: list[Document]) -> None:
        names = {str(subnet.get("name")).lower() for subnet in wanted}
        for subnet in list(call.resources.below(network_id, SUBNETS)):
            if subnet["name"].lower() not in names:
                _refuse_used_subnet(call, subnet)
                call.resources.delete(subnet["id"])
        for subnet in wanted:
            write_subnet(call, network_id, str(subnet.get("name")), subnet.get("properties") or {})


class Subnets(WrittenType):
    """Subnets, written one by one."""

    name = SUBNETS
    reads = MappingProxyType({"PUT": Understood.of(body=_SUBNET)})

    async def put(self, call: Call) -> Response:
        current = call.current
        self.envelope(call, tracked=False)
        write_subnet(call, str(call.path.parent_id), call.path.name, call.properties)
        return JSONResponse(public(self.existing(call)), status_code=200 if current else 201)

    def before_deletion(self, call: Call, resource: Document) -> None:
        _refuse_used_subnet(call, resource)


class NetworkSecurityGroups(WrittenType):
    """Network security groups; their rules are kept, but not enforced."""

    name = SECURITY_GROUPS
    reads = MappingProxyType({"PUT": Understood.of(body={**TRACKED, "properties": _GROUP})})

    async def put(self, call: Call) -> Response:
        resource, current = self.envelope(call, tracked=True), call.current
        check_name(call.path.name)
        guid = current["properties"].get("resourceGuid") if current else None
        kept = {
            "securityRules": call.properties.get("securityRules") or [],
            "resourceGuid": guid or str(uuid.uuid4()),
            "provisioningState": "Succeeded",
        }
        return self.written(call, {**resource, "properties": kept})

    def before_deletion(self, call: Call, resource: Document) -> None:
        if users := subnets_with(call, resource["id"]):
            raise ServiceError(
                400,
                "InUseNetworkSecurityGroupCannotBeDeleted",
                f"Network security group {resource['id']} cannot be deleted because it is in use by the following "
                f"resources: {', '.join(users)}. In order to delete the Network security group, remove the association "
                "with the resource(s).",
            )

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        used = [{"id": subnet_id} for subnet_id in subnets_with(call, resource["id"])]
        return {**public(resource), "properties": {**resource["properties"], **({"subnets": used} if used else {})}}


def write_subnet(call: Call, network_id: str, name: str, wanted: dict[str, Any]) -> None:
    """Write one subnet of a network; raises 400 for a range that does not fit, or a dangling reference."""
    owner = call.resources.get(network_id) or {}
    check_name(name, NAME)
    full_id = f"{owner['id']}/subnets/{name}"
    prefix = wanted.get("addressPrefix") or next(iter(wanted.get("addressPrefixes") or []), None)
    _check_range(call, owner, name, network(prefix, full_id))
    kept = {
        **_POLICIES,
        **{key: wanted[key] for key in _POLICIES if key in wanted},
        "addressPrefix": prefix,
        **_attached(call, wanted, full_id, owner["location"]),
        "provisioningState": "Succeeded",
    }
    call.resources.put({"id": full_id, "name": name, "type": SUBNETS, "properties": kept})


def _attached(call: Call, wanted: dict[str, Any], subnet_id: str, location: str) -> dict[str, Any]:
    """What the subnet refers to, which the writer may join."""
    attached: dict[str, Any] = {}
    for key, type_name in _ATTACHED.items():
        if (joined := reference(wanted.get(key))) is not None:
            call.require_linked(SUBNETS, f"{type_name}/join/action", [joined])
            attached[key] = {"id": referenced(call, joined, subnet_id, location)["id"]}
    return attached


def _check_range(call: Call, owner: Document, name: str, wanted: IPv4Network) -> None:
    space = owner["properties"]["addressSpace"]["addressPrefixes"]
    if not any(wanted.subnet_of(IPv4Network(prefix)) for prefix in space):
        raise ServiceError(
            400,
            "NetcfgSubnetRangeOutsideVnet",
            f"Subnet '{name}' is not valid because its IP address range is outside the IP address range of virtual "
            f"network '{owner['name']}'.",
        )
    others = [other for other in call.resources.below(owner["id"], SUBNETS) if other["name"].lower() != name.lower()]
    if any(wanted.overlaps(IPv4Network(other["properties"]["addressPrefix"])) for other in others):
        raise ServiceError(
            400,
            "NetcfgSubnetRangesOverlap",
            f"Subnet '{name}' is not valid because its IP address range overlaps with that of an existing subnet in "
            f"virtual network '{owner['name']}'.",
        )


def _refuse_used_subnet(call: Call, subnet: Document) -> None:
    if users := users_of_subnet(call, subnet["id"]):
        raise ServiceError(
            400,
            "InUseSubnetCannotBeDeleted",
            f"Subnet {subnet['name']} is in use by {' and '.join(users)} and cannot be deleted.",
        )


def subnets_with(call: Call, group_id: str) -> list[str]:
    """Ids of the subnets that have this network security group."""
    return [
        resource["id"]
        for resource in subscription_resources(call, SUBNETS)
        if (reference(resource["properties"].get("networkSecurityGroup")) or "").lower() == group_id.lower()
    ]
