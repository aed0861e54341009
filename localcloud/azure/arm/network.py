"""Microsoft.Network: the networks of a hosted cluster. They exist before any stack and are only read."""

from __future__ import annotations

from typing import Any

from localcloud.azure.arm.resource_type import Call, ResourceType, SeededType, StoredType
from localcloud.azure.resource_store import public
from localcloud.core.store import Document

SUBNETS = "Microsoft.Network/virtualNetworks/subnets"


class VirtualNetworks(StoredType):
    """Virtual networks; the answer carries the subnets, of which the control-plane operator wants one (`HCPC:1106`)."""

    name = "Microsoft.Network/virtualNetworks"

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        subnets = [public(each) for each in call.resources.below(resource["id"], SUBNETS)]
        return {**public(resource), "properties": {**resource["properties"], "subnets": subnets}}


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (
        VirtualNetworks(),
        SeededType(SUBNETS),
        SeededType("Microsoft.Network/networkSecurityGroups"),
        SeededType("Microsoft.Network/networkInterfaces"),
        SeededType("Microsoft.Network/dnsZones"),
        SeededType("Microsoft.Network/loadBalancers"),
    )
