"""Microsoft.Network: private DNS zones, their links to virtual networks, and A records; A and TXT of public zones.

Names are not resolved. Sources: REST reference of DNS 2018-05-01 and of private DNS 2024-06-01, azure-docs
`dns/private-dns-virtual-network-links` and `resource-name-rules`. Everything is created at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any, Final

from starlette.responses import Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.network_rules import (
    VIRTUAL_NETWORKS,
    check_name,
    reference,
    referenced,
    subscription_resources,
)
from localcloud.azure.arm.resource_type import Call, ResourceType, SeededType, WrittenType, collection
from localcloud.azure.resource_store import public
from localcloud.azure.shared.refusals import refusal
from localcloud.core.store import Document

PUBLIC_ZONES: Final = "Microsoft.Network/dnszones"
ZONES: Final = "Microsoft.Network/privateDnsZones"
LINKS: Final = f"{ZONES}/virtualNetworkLinks"
_LABEL: Final = re.compile(r"[a-zA-Z0-9_]([\w-]{0,61}[a-zA-Z0-9_])?", re.ASCII)
# Of a record: `@`, or labels below the zone, the first of which may be a wildcard.
_RECORD: Final = re.compile(r"@|\*|(\*\.)?[\w-]{1,63}(\.[\w-]{1,63})*", re.ASCII)
_KINDS: Final = ("A", "TXT")  # of records of a public zone
_JOIN: Final = f"{VIRTUAL_NETWORKS}/join/action"


class PrivateDnsZones(WrittenType):
    """Private DNS zones; a zone with links cannot be deleted."""

    name = ZONES

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=True)
        _check_global(self.name, resource)
        name = call.path.name
        labels = name.split(".")
        if not 2 <= len(labels) <= 34 or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
            raise refusal("BadRequest name of a zone", name=name)
        return self.written(call, {**resource, "properties": {"provisioningState": "Succeeded"}})

    def before_deletion(self, call: Call, resource: Document) -> None:
        found = call.resources.below(resource["id"], LINKS)
        if links := [f"{ZONES}/{resource['name']}/virtualNetworkLinks/{link['name']}" for link in found]:
            raise refusal("CannotDeleteResource", nested=", ".join(links))

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        links = list(call.resources.below(resource["id"], LINKS))
        counts = {
            "maxNumberOfRecordSets": 25000,
            "numberOfRecordSets": 1 + len(list(call.resources.below(resource["id"], f"{ZONES}/A"))),
            "maxNumberOfVirtualNetworkLinks": 1000,
            "numberOfVirtualNetworkLinks": len(links),
            "maxNumberOfVirtualNetworkLinksWithRegistration": 100,
            "numberOfVirtualNetworkLinksWithRegistration": len(
                [link for link in links if link["properties"]["registrationEnabled"]]
            ),
        }
        return {**public(resource), "properties": {**resource["properties"], **counts}}


class VirtualNetworkLinks(WrittenType):
    """Links. A network has one link to a zone, one zone of a name, and one zone that registers its names."""

    name = LINKS

    async def put(self, call: Call) -> Response:
        resource, current = self.envelope(call, tracked=True), call.current
        _check_global(self.name, resource)
        check_name(call.path.name)
        target = reference(call.properties.get("virtualNetwork"))
        if target is None:
            raise errors.bad_request("The property 'virtualNetwork' of a virtual network link is required.")
        call.require_linked(self.name, _JOIN, [target])
        target = referenced(call, target, resource["id"])["id"]
        registers = bool(call.properties.get("registrationEnabled", False))
        if current is not None and current["properties"]["virtualNetwork"]["id"].lower() != target.lower():
            raise errors.bad_request(f"The virtual network of the link '{current['name']}' cannot be changed.")
        self._refuse_second(call, target, registers=registers)
        kept = {
            "virtualNetwork": {"id": target},
            "registrationEnabled": registers,
            "virtualNetworkLinkState": "Completed",
            "provisioningState": "Succeeded",
        }
        return self.written(call, {**resource, "properties": kept})

    def _refuse_second(self, call: Call, target: str, *, registers: bool) -> None:
        zone, own = str(call.path.parent_id), call.path.key
        for link in links_to(call, target):
            other = link["id"].rpartition("/virtualNetworkLinks/")[0]
            if link["id"].lower() == own:
                continue
            if other.lower() == zone.lower():
                raise refusal("Conflict linked twice", network=target, zone=zone)
            names = [part.rpartition("/")[2] for part in (other, zone)]
            if names[0].lower() == names[1].lower():
                raise refusal("BadRequest linked to two zones of a name", zone=names[1], other=names[0])
            if registers and link["properties"]["registrationEnabled"]:
                raise refusal("BadRequest registers twice", network=target, zone=names[0])


class Records(WrittenType):
    """The records of one type, A or TXT, in zones of one type; members have upper-case names in public zones alone."""

    def __init__(self, zones: str, kind: str) -> None:
        self.name, self._kind = f"{zones}/{kind}", kind
        is_public = zones == PUBLIC_ZONES
        self._ttl, self._records = ("TTL", f"{kind}Records") if is_public else ("ttl", f"{kind.lower()}Records")
        self._own = {"provisioningState": "Succeeded", "targetResource": {}} if is_public else {}

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=False)
        zone, name = call.path.names
        ttl, records = call.properties.get(self._ttl), call.properties.get(self._records) or []
        if not _RECORD.fullmatch(name):
            raise errors.bad_request(f"The domain name '{name}.{zone}' is invalid.")
        if ttl is None or not 1 <= ttl < 1 << 31:
            raise errors.bad_request(f"The TTL '{ttl}' of the record set '{name}' is not valid: 1-2147483647 seconds.")
        for record in records if self._kind == "A" else ():
            try:
                IPv4Address(record.get("ipv4Address"))
            except ValueError:
                raise refusal("BadRequest address of a record", address=record.get("ipv4Address"), name=name) from None
        kept = {
            "metadata": call.properties.get("metadata") or {},
            "fqdn": f"{'' if name == '@' else f'{name}.'}{zone}.",
            self._ttl: ttl,
            self._records: records,
            **self._own,
        }
        return self.written(call, {**resource, "properties": kept})


class AllRecords(ResourceType):
    """The records of a public zone, whatever their type."""

    name = f"{PUBLIC_ZONES}/all"

    async def list(self, call: Call) -> Response:
        types, zone = (f"{PUBLIC_ZONES}/{kind}" for kind in _KINDS), str(call.path.parent_id)
        return collection(public(record) for name in types for record in call.resources.below(zone, name))


DNS_TYPES: Final = (
    SeededType(PUBLIC_ZONES),
    *(Records(PUBLIC_ZONES, kind) for kind in _KINDS),
    AllRecords(),
    PrivateDnsZones(),
    Records(ZONES, "A"),
    VirtualNetworkLinks(),
)


def links_to(call: Call, network_id: str) -> Iterator[Document]:
    """The links of all zones to one virtual network."""
    for resource in subscription_resources(call, LINKS):
        if resource["properties"]["virtualNetwork"]["id"].lower() == network_id.lower():
            yield resource


def _check_global(type_name: str, resource: Document) -> None:
    if resource["location"] != "global":
        raise refusal("LocationNotAvailableForResourceType", location=resource["location"], type=type_name)
