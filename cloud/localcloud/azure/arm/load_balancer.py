"""Microsoft.Network: public IP addresses and load balancers.

A load balancer's parts are members of its body; each gets an id below the load balancer's. No traffic passes. Left
out: IPv6, zones, prefixes, cross-region balancers, the parts as resources of their own. Everything is created at once.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.network_rules import (
    LOAD_BALANCERS,
    PUBLIC_ADDRESSES,
    SUBNETS,
    check_name,
    missing_reference,
    reference,
    referenced,
    subscription_resources,
)
from localcloud.azure.arm.resource_type import TRACKED, Call, WrittenType, enumerated
from localcloud.azure.resource_store import public
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.understood import ANY, Members, Understood
from localcloud.core.store import Document

_FRONTENDS: Final = "frontendIPConfigurations"
_PARTS: Final = (
    *(_FRONTENDS, "backendAddressPools", "probes", "loadBalancingRules", "outboundRules"),
    *("inboundNatRules", "inboundNatPools"),
)
_REFERRING: Final = ("loadBalancingRules", "outboundRules", "inboundNatRules", "inboundNatPools")
# Of either type, the default first.
_SKU: Final = {"name": ("Basic", "Standard"), "tier": ("Regional",)}
_OF_AN_ADDRESS: Final = ("publicIPAddressVersion", "publicIPAllocationMethod", "idleTimeoutInMinutes")
_ANSWERED: Final = ("provisioningState", "resourceGuid", "ipAddress", "ipConfiguration", "ipTags", "ddosSettings")
_MINUTES: Final = range(4, 31)


_PART: Final[Members] = {ANY: None, "properties": {ANY: None}}


def _reads(properties: Members) -> Understood:
    members = {**dict.fromkeys(_ANSWERED), **properties}
    return Understood.of(body={**TRACKED, "sku": dict.fromkeys(_SKU), "properties": members})


class PublicIPAddresses(WrittenType):
    """Public addresses; a static one has its address from the start."""

    name = PUBLIC_ADDRESSES
    reads = MappingProxyType({"PUT": _reads(dict.fromkeys(_OF_AN_ADDRESS))})

    async def put(self, call: Call) -> Response:
        resource, current = self.envelope(call, tracked=True), call.current
        check_name(call.path.name)
        sku = _sku(call.body.get("sku") or {})
        properties = call.properties
        method = _choice(properties, "publicIPAllocationMethod", ("Dynamic", "Static"))
        if sku["name"] != "Basic" and method != "Static":
            raise ServiceError(
                400,
                "StandardAndStandardV2SkuPublicIPAddressesMustBeStatic",
                f"{sku['name']} sku publicIp {resource['id']} must have AllocationMethod set to Static.",
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
        return self.written(call, {**resource, "sku": sku, "properties": kept})

    def before_deletion(self, call: Call, resource: Document) -> None:
        if users := list(frontends_with(call, resource["id"])):
            raise ServiceError(
                400,
                "PublicIPAddressCannotBeDeleted",
                f"Public IP address {resource['id']} can not be deleted since it is still allocated to resource "
                f"{users[0]}.",
            )

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        used = next(frontends_with(call, resource["id"]), None)
        allocated = {"ipConfiguration": {"id": used}} if used else {}
        return {**public(resource), "properties": {**resource["properties"], **allocated}}


class LoadBalancers(WrittenType):
    """Load balancers, written as a whole: a PUT removes what it leaves out."""

    name = LOAD_BALANCERS
    reads = MappingProxyType({"PUT": _reads(dict.fromkeys(_PARTS, _PART))})

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
        return self.written(call, {**resource, "sku": sku, "properties": {**parts, "provisioningState": "Succeeded"}})

    def _check_frontend(self, call: Call, balancer: Document, frontend: Document) -> None:
        address = reference(frontend["properties"].get("publicIPAddress"))
        subnet = reference(frontend["properties"].get("subnet"))
        if address is None and subnet is None:
            raise ServiceError(
                400,
                "FrontendIPConfigHasNoSubnetOrPublicIP",
                f"Frontend IP Configuration {frontend['id']} must reference either a Subnet or a Public IP Address.",
            )
        if subnet is not None:
            call.require_linked(self.name, f"{SUBNETS}/join/action", [subnet])
            referenced(call, subnet, frontend["id"])
        if address is None:
            return
        call.require_linked(self.name, f"{PUBLIC_ADDRESSES}/join/action", [address])
        public_ip = referenced(call, address, frontend["id"], balancer["location"])
        if public_ip["sku"]["name"] != balancer["sku"]["name"]:
            raise ServiceError(
                400,
                "PublicIPAndLBSkuDoNotMatch",
                f"{balancer['sku']['name']} sku load balancer {balancer['id']} cannot reference "
                f"{public_ip['sku']['name']} sku publicIP {public_ip['id']}.",
            )
        others = [other for other in frontends_with(call, public_ip["id"]) if other.lower() != frontend["id"].lower()]
        if others:
            raise ServiceError(
                400,
                "PublicIPAddressInUse",
                f"Resource {frontend['id']} is referencing public IP address {public_ip['id']} that is already "
                f"allocated to resource {others[0]}.",
            )


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
        raise errors.bad_request(
            f"The outbound rule {rule['id']} must have a backend address pool and a frontend IP configuration."
        )
    single = [properties.get(key) for key in ("frontendIPConfiguration", "backendAddressPool", "probe")]
    for part in (*single, *(properties.get(_FRONTENDS) or [])):
        target = reference(part)
        # The SDK of HyperShift's CLI sends ids without a first slash, too, and Azure takes them.
        if target is not None and f"/{target.lower().strip('/')}" not in ids:
            raise missing_reference(target, rule["id"])
