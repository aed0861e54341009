"""Microsoft.Compute: disks and snapshots without content, the sizes of machines, and what only the seed creates.

Sources: azure-rest-api-specs `compute/…/DiskRP/2025-01-02/{disk,snapshot}.json`, `Skus/2021-07-01/skus.json`. Disks are
made at once, and attached to nothing.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.network_rules import check_name
from localcloud.azure.arm.resource_type import TRACKED, Call, ResourceType, SeededType, WrittenType, collection
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.understood import ANY, Understood
from localcloud.core.clock import now, rfc3339

_SEEDED: Final = ("Microsoft.Compute/virtualMachines", "Microsoft.Compute/virtualMachineScaleSets")
# What a client may send beside `creationData`: kept as it is, for nothing here attaches or reads a disk.
_DISK: Final = {**TRACKED, "sku": None, "zones": None, "properties": {ANY: None, "creationData": None}}
_COPIES: Final = ("Copy", "Restore", "CopyStart")


class Disks(WrittenType):
    """Managed disks and their snapshots, which a disk or a snapshot may be a copy of."""

    reads = MappingProxyType({"PUT": Understood.of(body=_DISK)})

    def __init__(self, name: str) -> None:
        self.name = name

    async def put(self, call: Call) -> Response:
        resource, current = self.envelope(call, tracked=True), call.current
        check_name(call.path.name)
        before = current["properties"] if current else {}
        properties = {**before, **call.properties}
        size: Any = properties.get("diskSizeGB")
        source = properties.get("creationData") or {}
        if source.get("createOption") in _COPIES:
            copied = call.resources.get(str(source.get("sourceResourceId")))
            if copied is None:
                raise ServiceError(404, "NotFound", f"Resource {source.get('sourceResourceId')} is not found.")
            size = size or copied["properties"].get("diskSizeGB")
        for name, value in (("creationData.createOption", source.get("createOption")), ("diskSizeGB", size)):
            if value is None:
                raise ServiceError(400, "InvalidParameter", f"Required parameter 'disk.{name}' is missing (null).")
        kept = {
            **properties,
            "diskSizeGB": size,
            "diskSizeBytes": size << 30,
            "diskState": "Unattached",
            "provisioningState": "Succeeded",
            "timeCreated": before.get("timeCreated", rfc3339(now())),
            "uniqueId": before.get("uniqueId", str(uuid.uuid4())),
        }
        resource |= {"sku": call.body.get("sku") or {"name": "Standard_LRS"}}
        resource |= {"zones": call.body["zones"]} if "zones" in call.body else {}
        answer = self.written(call, {**resource, "properties": kept})
        answer.status_code = 200  # of a new one, too: clients take 200 and 202 alone
        return answer


# Of each size: processors and memory in GiB. Enough for a program that looks whether its size is there.
_SIZES: Final[Mapping[str, tuple[int, int]]] = {
    f"Standard_D{count}s_{version}": (count, 4 * count) for version in ("v3", "v5") for count in (2, 4, 8, 16)
}
_FILTER: Final = re.compile(r"location eq '(\w+)'", re.IGNORECASE)


class Skus(ResourceType):
    """Some sizes of machines, in every region and zone that is asked for.

    Microsoft's own Cluster API provider lists them before it makes a machine, with roles at resource groups only.
    """

    name = "Microsoft.Compute/skus"
    read_with_any_role = True
    reads = MappingProxyType({"list": Understood.of("$filter includeextendedlocations")})

    async def list(self, call: Call) -> Response:
        asked = _FILTER.fullmatch(call.query.get("$filter", ""))
        if asked is None:
            raise errors.not_emulated(f"$filter={call.query.get('$filter')} of the list of {self.name}")
        return collection(_size(asked[1], name, *size) for name, size in _SIZES.items())


def _size(region: str, name: str, processors: int, memory: int) -> dict[str, Any]:
    capabilities = {
        "vCPUs": str(processors),
        "MemoryGB": str(memory),
        "MaxDataDiskCount": str(2 * processors),
        "CpuArchitectureType": "x64",
        "HyperVGenerations": "V1,V2",
        **dict.fromkeys(("PremiumIO", "AcceleratedNetworkingEnabled", "EncryptionAtHostSupported"), "True"),
        "EphemeralOSDiskSupported": "False",
    }
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "tier": "Standard",
        "size": name.removeprefix("Standard_"),
        "family": f"standardDS{name.rpartition('_')[2]}Family",
        "locations": [region],
        "locationInfo": [{"location": region, "zones": ["1", "2", "3"], "zoneDetails": []}],
        "capabilities": [{"name": key, "value": value} for key, value in capabilities.items()],
        "restrictions": [],
    }


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    written = (Disks(f"Microsoft.Compute/{name}") for name in ("disks", "snapshots"))
    return (*map(SeededType, _SEEDED), *written, Skus())
