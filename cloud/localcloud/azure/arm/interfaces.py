"""Microsoft.Network: the interfaces of machines, with their addresses in subnets.

Sources: REST reference of network interfaces 2024-05-01; azure-docs `virtual-network/virtual-networks-faq` (the first
four addresses of a subnet are Azure's). Left out: IPv6, public addresses, a change of the subnet's range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from starlette.responses import Response

from localcloud.azure.arm.network_rules import (
    INTERFACES,
    LOAD_BALANCERS,
    SUBNETS,
    check_name,
    machine_with,
    network,
    reference,
    referenced,
    refuse_used_interface,
    subscription_resources,
)
from localcloud.azure.arm.resource_type import Call, WrittenType
from localcloud.azure.resource_store import public
from localcloud.azure.shared.refusals import refusal
from localcloud.core.store import Document

_CONFIGURATIONS: Final = "ipConfigurations"
_OF_AZURE: Final = 3
"""Of the hosts of a subnet, whose address itself is none of them."""


class NetworkInterfaces(WrittenType):
    """Interfaces, kept as they are written; each address is in a subnet that its writer may join."""

    name = INTERFACES

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=True)
        check_name(call.path.name)
        taken = dict(_taken(call, resource["id"]))
        configurations = [
            self._configuration(call, resource["id"], configuration, taken)
            for configuration in call.properties.get(_CONFIGURATIONS) or []
        ]
        for first in configurations[:1]:
            first["properties"].setdefault("primary", True)
        kept = {**call.properties, _CONFIGURATIONS: configurations, "provisioningState": "Succeeded"}
        return self.written(call, {**resource, "properties": kept})

    def before_deletion(self, call: Call, resource: Document) -> None:
        refuse_used_interface(call, resource["id"])

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        machine = machine_with(call, resource["id"])
        used = {"virtualMachine": {"id": machine}} if machine else {}
        return {**public(resource), "properties": {**resource["properties"], **used}}

    def _configuration(
        self, call: Call, interface: str, written: Mapping[str, Any], taken: dict[tuple[str, str], str]
    ) -> dict[str, Any]:
        """One as it is kept, with its address, which is then `taken`."""
        properties = written.get("properties") or {}
        subnet_id = reference(properties.get("subnet")) or ""
        call.require_linked(self.name, f"{SUBNETS}/join/action", [subnet_id])
        pools = [str(reference(pool)) for pool in properties.get("loadBalancerBackendAddressPools") or []]
        call.require_linked(self.name, f"{LOAD_BALANCERS}/backendAddressPools/join/action", pools)
        subnet = referenced(call, subnet_id, interface)
        own = f"{interface}/{_CONFIGURATIONS}/{written.get('name')}"
        hosts = map(str, islice(network(subnet["properties"]["addressPrefix"], subnet_id).hosts(), _OF_AZURE, None))
        free = (host for host in hosts if (subnet["id"], host) not in taken)
        address = properties.get("privateIPAddress") or next(free)
        if (owner := taken.setdefault((subnet["id"], address), interface)) != interface:
            raise refusal("PrivateIPAddressIsAllocated", configuration=own, address=address, owner=owner)
        defaults = {"privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4"}
        kept = {**defaults, **properties, "privateIPAddress": address, "provisioningState": "Succeeded"}
        return {"id": own, "name": written.get("name"), "properties": kept}


def _taken(call: Call, but: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Subnet and address of every configuration of other interfaces, each with its interface."""
    for interface in subscription_resources(call, INTERFACES):
        if interface["id"].lower() != but.lower():
            for configuration in interface["properties"].get(_CONFIGURATIONS, []):
                properties = configuration["properties"]
                subnet = call.resources.get(str(reference(properties.get("subnet")))) or {"id": ""}
                yield (subnet["id"], properties.get("privateIPAddress")), interface["id"]
