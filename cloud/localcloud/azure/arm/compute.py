"""Microsoft.Compute: disks and snapshots without content, machines that run nothing, and the sizes of machines.

Sources: azure-rest-api-specs `compute/…/DiskRP/2025-01-02/{disk,snapshot}.json`, `Skus/2021-07-01/skus.json`,
`ComputeRP/2024-07-01/virtualMachine.json`. Everything is made at once.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.responses import Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.managedidentity import IDENTITIES
from localcloud.azure.arm.network_rules import (
    INTERFACES,
    MACHINES,
    check_name,
    machine_with,
    reference,
    referenced,
    refuse_used_interface,
)
from localcloud.azure.arm.resource_type import Call, ResourceType, SeededType, WrittenType, collection
from localcloud.azure.resource_store import public
from localcloud.azure.shared.refusals import refusal
from localcloud.core.clock import now, rfc3339
from localcloud.core.documents import document
from localcloud.core.store import Document

_COPIES: Final = ("Copy", "Restore", "CopyStart")


class Disks(WrittenType):
    """Managed disks and their snapshots, which a disk or a snapshot may be a copy of."""

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
                raise refusal("NotFound source of a disk", resource=source.get("sourceResourceId"))
            size = size or copied["properties"].get("diskSizeGB")
        _require({"disk.creationData.createOption": source.get("createOption"), "disk.diskSizeGB": size})
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

    def before_deletion(self, call: Call, resource: Document) -> None:
        if (machine := machine_with(call, resource["id"])) is not None:
            raise refusal("OperationNotAllowed", disk=resource["name"], machine=machine)

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        if (machine := machine_with(call, resource["id"])) is None:
            return public(resource)
        properties = {**resource["properties"], "diskState": "Attached"}
        return {**public(resource), "managedBy": machine, "properties": properties}


class VirtualMachines(WrittenType):
    """Machines, whose disk of the operating system is no resource.

    A PUT leaves what it does not have as it is, and needs the right to join what it has: the disk driver, which
    attaches disks by a PUT of nothing else, may not join an interface (`roles.yaml`).
    """

    name = MACHINES

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=True)
        current: Document = call.current or {"properties": {}}
        check_name(call.path.name)
        before, written = current["properties"], call.properties
        self._join(call, (written.get("networkProfile") or {}).get("networkInterfaces") or [], resource)
        storage = {**before.get("storageProfile", {}), **written.get("storageProfile", {})}
        disks = [disk for disk in storage.get("dataDisks") or [] if not disk.get("toBeDetached")]
        for disk in filter(None, (reference(disk.get("managedDisk")) for disk in disks)):
            _check_attached(call, resource["id"], disk)
        made = {"vmId": str(uuid.uuid4()), "timeCreated": rfc3339(now()), "provisioningState": "Succeeded"}
        kept = {**made, **before, **written, "storageProfile": {**storage, "dataDisks": disks}}
        _require({name: kept.get(name) for name in ("hardwareProfile", "networkProfile")})
        # Read by the machine alone.
        hidden = ("adminPassword", "customData", "secrets")
        kept |= {"osProfile": {name: value for name, value in kept.get("osProfile", {}).items() if name not in hidden}}
        asked = {**current, **call.body}
        resource |= {name: asked[name] for name in ("identity", "zones") if name in asked}
        return self.written(call, {**resource, "properties": kept})

    def _join(self, call: Call, interfaces: Iterable[Mapping[str, Any]], machine: Document) -> None:
        ids = [str(reference(interface)) for interface in interfaces]
        call.require_linked(self.name, f"{INTERFACES}/join/action", ids)
        for interface in ids:
            referenced(call, interface, machine["id"], machine["location"])
            refuse_used_interface(call, interface, machine["id"])
        identities = (call.body.get("identity") or {}).get("userAssignedIdentities") or {}
        call.require_linked(self.name, f"{IDENTITIES}/assign/action", identities)


def _check_attached(call: Call, machine: str, disk: str) -> None:
    """Refuse a disk that is not there, or another machine's."""
    if call.resources.get(disk) is None:
        raise refusal("NotFound disk", disk=disk)
    owner = machine_with(call, disk)
    if owner is not None and owner.lower() != machine.lower():
        raise refusal("ConflictingUserInput", disk=disk, machine=owner)


def _require(parameters: Mapping[str, Any]) -> None:
    for name, value in parameters.items():
        if value is None:
            raise refusal("InvalidParameter required", name=name)


_FILTER: Final = re.compile(r"location eq '(\w+)'", re.IGNORECASE)


class Skus(ResourceType):
    """Some sizes of machines, in every region and zone that is asked for: enough to see that a program's is there.

    Microsoft's own Cluster API provider lists them before it makes a machine, with roles at resource groups only.
    """

    name = "Microsoft.Compute/skus"
    read_with_any_role = True

    async def list(self, call: Call) -> Response:
        asked = _FILTER.fullmatch(call.query.get("$filter", ""))
        if asked is None:
            raise errors.not_emulated(f"$filter={call.query.get('$filter')} of the list of {self.name}")
        return collection(_size(asked[1], version, count) for version in ("v3", "v5") for count in (2, 4, 8, 16))


def _size(region: str, version: str, processors: int) -> dict[str, Any]:
    return document(
        *(__file__, "size"),
        region=region,
        size=f"D{processors}s_{version}",
        version=version,
        processors=str(processors),
        memory=str(4 * processors),
        disks=str(2 * processors),
    )


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    written = (Disks(f"Microsoft.Compute/{name}") for name in ("disks", "snapshots"))
    return VirtualMachines(), SeededType("Microsoft.Compute/virtualMachineScaleSets"), *written, Skus()
