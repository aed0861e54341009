"""Microsoft.Network: the networks of hosted clusters, seeded or created by a stack."""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.dns import DNS_TYPES, links_to
from localcloud.azure.arm.interfaces import NetworkInterfaces
from localcloud.azure.arm.network_rules import (
    LOAD_BALANCERS,
    NAME,
    NAT_GATEWAYS,
    PUBLIC_ADDRESSES,
    ROUTE_TABLES,
    SECURITY_GROUPS,
    SUBNETS,
    VIRTUAL_NETWORKS,
    check_name,
    check_security_rule,
    network,
    reference,
    referenced,
    subscription_resources,
    users_of_subnet,
)
from localcloud.azure.arm.resource_type import Call, ResourceType, SeededType, WrittenType, enumerated
from localcloud.azure.resource_store import public
from localcloud.azure.shared.refusals import refusal
from localcloud.core.store import Document

# Microsoft.Network: virtual networks, their subnets, and network security groups.
#
# A PUT of a network replaces its subnets by those in the body; a subnet can be written by itself as well. Left out:
# peerings, DHCP options, delegations, service endpoints, IPv6, the evaluation of security rules. Everything is created
# at once.

_NETWORK_NAME: Final = re.compile(r"[a-zA-Z0-9][\w.-]{0,62}\w", re.ASCII)
_ATTACHED: Final = {"networkSecurityGroup": SECURITY_GROUPS, "routeTable": ROUTE_TABLES, "natGateway": NAT_GATEWAYS}
# The two policies' defaults since 2023 (azure-docs `private-link/disable-private-endpoint-network-policy`).
_POLICIES: Final = {"privateEndpointNetworkPolicies": "Disabled", "privateLinkServiceNetworkPolicies": "Enabled"}


class VirtualNetworks(WrittenType):
    """Virtual networks; the answer carries the subnets."""

    name = VIRTUAL_NETWORKS

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
            write_subnet(call, network_id, str(subnet.get("name") or ""), subnet.get("properties") or {})


class Subnets(WrittenType):
    """Subnets, written one by one."""

    name = SUBNETS

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

    async def put(self, call: Call) -> Response:
        resource, current = self.envelope(call, tracked=True), call.current
        check_name(call.path.name)
        guid = current["properties"].get("resourceGuid") if current else None
        rules = call.properties.get("securityRules") or []
        for rule in rules:
            check_security_rule(resource["id"], rule)
        kept = {
            "securityRules": rules,
            "resourceGuid": guid or str(uuid.uuid4()),
            "provisioningState": "Succeeded",
        }
        return self.written(call, {**resource, "properties": kept})

    def before_deletion(self, call: Call, resource: Document) -> None:
        if users := subnets_with(call, resource["id"]):
            raise refusal("InUseNetworkSecurityGroupCannotBeDeleted", group=resource["id"], users=", ".join(users))

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
        if (joined := reference(wanted.get(key))) is None:
            if wanted.get(key) is not None:
                raise errors.invalid_format(SUBNETS, ("properties", key, "id"), "required")
        else:
            call.require_linked(SUBNETS, f"{type_name}/join/action", [joined])
            attached[key] = {"id": referenced(call, joined, subnet_id, location)["id"]}
    return attached


def _check_range(call: Call, owner: Document, name: str, wanted: IPv4Network) -> None:
    space = owner["properties"]["addressSpace"]["addressPrefixes"]
    if not any(wanted.subnet_of(IPv4Network(prefix)) for prefix in space):
        raise refusal("NetcfgSubnetRangeOutsideVnet", subnet=name, network=owner["name"])
    others = [other for other in call.resources.below(owner["id"], SUBNETS) if other["name"].lower() != name.lower()]
    if any(wanted.overlaps(IPv4Network(other["properties"]["addressPrefix"])) for other in others):
        raise refusal("NetcfgSubnetRangesOverlap", subnet=name, network=owner["name"])


def _refuse_used_subnet(call: Call, subnet: Document) -> None:
    if users := users_of_subnet(call, subnet["id"]):
        raise refusal("InUseSubnetCannotBeDeleted", subnet=subnet["name"], users=" and ".join(users))


def subnets_with(call: Call, group_id: str) -> list[str]:
    """Ids of the subnets that have this network security group."""
    return [
        resource["id"]
        for resource in subscription_resources(call, SUBNETS)
        if (reference(resource["properties"].get("networkSecurityGroup")) or "").lower() == group_id.lower()
    ]


# Microsoft.Network: public IP addresses and load balancers.
#
# A load balancer's parts are members of its body; each gets an id below the load balancer's. No traffic passes. Left
# out: IPv6, zones but of addresses, prefixes, cross-region balancers, the parts as resources of their own. Everything
# is created at once.

_FRONTENDS: Final = "frontendIPConfigurations"
_PARTS: Final = (
    *(_FRONTENDS, "backendAddressPools", "probes", "loadBalancingRules", "outboundRules"),
    *("inboundNatRules", "inboundNatPools"),
)
_REFERRING: Final = ("loadBalancingRules", "outboundRules", "inboundNatRules", "inboundNatPools")
# `required` in azure-rest-api-specs network 2024-05-01, loadBalancer.json; what refers to others is checked below.
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "probes": ("port", "protocol"),
    "loadBalancingRules": ("frontendPort", "protocol"),
    "outboundRules": ("protocol",),
    "inboundNatPools": ("backendPort", "frontendPortRangeEnd", "frontendPortRangeStart", "protocol"),
}
# Of either type, the default first.
_SKU: Final = {"name": ("Basic", "Standard"), "tier": ("Regional",)}
_MINUTES: Final = range(4, 31)


class PublicIPAddresses(WrittenType):
    """Public addresses; a static one has its address from the start."""

    name = PUBLIC_ADDRESSES

    async def put(self, call: Call) -> Response:
        resource, current = self.envelope(call, tracked=True), call.current
        check_name(call.path.name)
        sku = _sku(call.body.get("sku") or {})
        properties = call.properties
        method = _choice(properties, "publicIPAllocationMethod", ("Dynamic", "Static"))
        if sku["name"] != "Basic" and method != "Static":
            raise refusal(
                "StandardAndStandardV2SkuPublicIPAddressesMustBeStatic", sku=sku["name"], address=resource["id"]
            )
        minutes = properties.get("idleTimeoutInMinutes", 4)
        if minutes not in _MINUTES:
            raise errors.bad_request(f"The idle timeout of {minutes} minutes is not valid: 4-30.")
        # TEST-NET-3 (RFC 5737), which is never an address of Azure.
        address = f"203.0.113.{zlib.crc32(resource['id'].lower().encode()) % 254 + 1}"
        kept = {
            "publicIPAddressVersion": _choice(properties, "publicIPAddressVersion", ("IPv4",)),
            "publicIPAllocationMethod": method,
            "idleTimeoutInMinutes": minutes,
            "ipTags": [],
            "resourceGuid": (current["properties"].get("resourceGuid") if current else None) or str(uuid.uuid4()),
            "provisioningState": "Succeeded",
            **({"ipAddress": address} if method == "Static" else {}),
        }
        zones = {"zones": call.body["zones"]} if call.body.get("zones") else {}
        return self.written(call, {**resource, **zones, "sku": sku, "properties": kept})

    def before_deletion(self, call: Call, resource: Document) -> None:
        if users := list(frontends_with(call, resource["id"])):
            raise refusal("PublicIPAddressCannotBeDeleted", address=resource["id"], user=users[0])

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        used = next(frontends_with(call, resource["id"]), None)
        allocated = {"ipConfiguration": {"id": used}} if used else {}
        return {**public(resource), "properties": {**resource["properties"], **allocated}}


class LoadBalancers(WrittenType):
    """Load balancers, written as a whole: a PUT removes what it leaves out."""

    name = LOAD_BALANCERS

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=True)
        check_name(call.path.name)
        sku = _sku(call.body.get("sku") or {})
        parts = {key: [_part(resource["id"], key, part) for part in call.properties.get(key) or []] for key in _PARTS}
        for frontend in parts[_FRONTENDS]:
            self._check_frontend(call, {**resource, "sku": sku}, frontend)
        ids = {part["id"].lower() for members in parts.values() for part in members}
        for rule in (part for key in _REFERRING for part in parts[key]):
            _check_references(rule, resource["id"], ids)
        for key, names in _REQUIRED.items():
            for part in parts[key]:
                if missing := [name for name in names if part["properties"].get(name) is None]:
                    raise errors.invalid_format(self.name, ("properties", key, part["name"], missing[0]), "required")
        return self.written(call, {**resource, "sku": sku, "properties": {**parts, "provisioningState": "Succeeded"}})

    def _check_frontend(self, call: Call, balancer: Document, frontend: Document) -> None:
        address = reference(frontend["properties"].get("publicIPAddress"))
        subnet = reference(frontend["properties"].get("subnet"))
        if address is None and subnet is None:
            raise refusal("FrontendIPConfigHasNoSubnetOrPublicIP", frontend=frontend["id"])
        if subnet is not None:
            call.require_linked(self.name, f"{SUBNETS}/join/action", [subnet])
            referenced(call, subnet, frontend["id"])
        if address is None:
            return
        call.require_linked(self.name, f"{PUBLIC_ADDRESSES}/join/action", [address])
        public_ip = referenced(call, address, frontend["id"], balancer["location"])
        if public_ip["sku"]["name"] != balancer["sku"]["name"]:
            words = {"sku": balancer["sku"]["name"], "balancer": balancer["id"], "other_sku": public_ip["sku"]["name"]}
            raise refusal("PublicIPAndLBSkuDoNotMatch", **words, address=public_ip["id"])
        others = [other for other in frontends_with(call, public_ip["id"]) if other.lower() != frontend["id"].lower()]
        if others:
            words = {"frontend": frontend["id"], "address": public_ip["id"], "user": others[0]}
            raise refusal("PublicIPAddressInUse", **words)


def _sku(requested: Mapping[str, Any]) -> dict[str, str]:
    return {name: _choice(requested, name, choices) for name, choices in _SKU.items()}


def _choice(properties: Mapping[str, Any], name: str, choices: Sequence[str]) -> str:
    """The requested choice, by default the first; raises 501 for any other."""
    asked = properties.get(name, choices[0])
    choice = enumerated(asked, choices)
    if choice is None:
        raise errors.not_emulated(f"{name} {asked} of a load balancer or its address")
    return choice


def frontends_with(call: Call, address_id: str) -> Iterator[str]:
    """Ids of the frontends that have this public address."""
    for balancer in subscription_resources(call, LOAD_BALANCERS):
        for frontend in balancer["properties"].get(_FRONTENDS, []):
            if (reference(frontend["properties"].get("publicIPAddress")) or "").lower() == address_id.lower():
                yield frontend["id"]


def _part(balancer_id: str, key: str, body: Mapping[str, Any]) -> Document:
    name = str(body.get("name") or "")
    check_name(name)
    part = {"name": name, "id": f"{balancer_id}/{key}/{name}", "type": f"{LOAD_BALANCERS}/{key}"}
    return {**part, "properties": {**(body.get("properties") or {}), "provisioningState": "Succeeded"}}


def _check_references(rule: Document, balancer_id: str, ids: set[str]) -> None:
    """Check that a rule refers to parts of the same load balancer; an outbound rule has a frontend and a pool."""
    properties = rule["properties"]
    if rule["type"].endswith("/outboundRules") and not (
        properties.get(_FRONTENDS) and reference(properties.get("backendAddressPool"))
    ):
        raise refusal("BadRequest outbound rule", rule=rule["id"])
    single = [properties.get(key) for key in ("frontendIPConfiguration", "backendAddressPool", "probe")]
    for part in (*single, *(properties.get(_FRONTENDS) or [])):
        target = reference(part)
        # The SDK of HyperShift's CLI sends ids without a first slash, too, and Azure takes them.
        if target is not None and f"/{target.lower().strip('/')}" not in ids:
            raise refusal("InvalidResourceReference", resource=target, referrer=rule["id"])


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (
        VirtualNetworks(),
        Subnets(),
        NetworkSecurityGroups(),
        NetworkInterfaces(),
        SeededType(ROUTE_TABLES),
        SeededType(NAT_GATEWAYS),
        SeededType("Microsoft.Network/privateLinkServices"),
        PublicIPAddresses(),
        LoadBalancers(),
        *DNS_TYPES,
    )
