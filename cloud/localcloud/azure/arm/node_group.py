"""A managed cluster's second resource group: its nodes, and the identities that AKS makes for it.

For IMDS, a scale set here is this machine's node: the identities in its `identity` get tokens on this machine.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from localcloud.azure.arm import errors
from localcloud.azure.arm.managedidentity import IDENTITIES, new_identity
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.core.arm_ids import in_lower_case, resource_group_id, resource_id
from localcloud.core.store import Document

_GROUPS: Final = "Microsoft.Resources/resourceGroups"
_SCALE_SETS: Final = "Microsoft.Compute/virtualMachineScaleSets"


class NodeGroup:
    """The node resource group of one cluster, by its ARM id."""

    def __init__(self, cloud: LocalAzure, resources: Resources, cluster: str, name: str) -> None:
        self._cloud = cloud
        self._resources = resources
        self._cluster = cluster
        self._name = name
        self._id = resource_group_id(cloud.subscription_id, name)

    def create(self, location: str, tags: Mapping[str, str]) -> None:
        """Create the group unless the cluster already has it; raises 400 if another owner has it."""
        current = self._resources.get(self._id)
        if current is None:
            group = self._document(self._id, _GROUPS, location, {"provisioningState": "Succeeded"})
            self._resources.put({**group, "tags": dict(tags), "managedBy": self._cluster})
        elif str(current.get("managedBy") or self._cluster).lower() != self._cluster.lower():
            raise errors.bad_request(f"The node resource group '{self._name}' already exists.")

    def identity(self, name: str, location: str) -> dict[str, str]:
        """A managed identity in it, created on the first call, in the form of a cluster's `identityProfile`."""
        full_id = in_lower_case(resource_id(self._cloud.subscription_id, self._name, IDENTITIES, name))
        identity = self._resources.get(full_id) or new_identity(
            self._cloud, self._resources, self._document(full_id, IDENTITIES, location, {})
        )
        ids = identity["properties"]
        return {"resourceId": identity["id"], "clientId": ids["clientId"], "objectId": ids["principalId"]}

    def remove_identity(self, name: str) -> None:
        """Delete a managed identity in it and its principal, if there is one."""
        identity = self._resources.get(resource_id(self._cloud.subscription_id, self._name, IDENTITIES, name))
        if identity is not None:
            self._delete(identity)

    def attach(self, pools: list[dict[str, Any]], location: str, identities: list[dict[str, str]]) -> None:
        """Attach exactly these identities to the nodes of every pool."""
        carried = {
            identity["resourceId"]: {"clientId": identity["clientId"], "principalId": identity["objectId"]}
            for identity in identities
        }
        for pool in pools:
            number = uuid.uuid5(uuid.NAMESPACE_URL, f"{self._id.lower()}/{pool['name']}").int % 10**8
            name = f"aks-{pool['name']}-{number:08}-vmss"
            full_id = resource_id(self._cloud.subscription_id, self._name, _SCALE_SETS, name)
            scale_set = self._document(full_id, _SCALE_SETS, location, {"provisioningState": "Succeeded"})
            attached = {"type": "UserAssigned", "userAssignedIdentities": carried}
            self._resources.put({**scale_set, "identity": attached})

    def remove(self) -> None:
        """Delete the group with everything in it; role assignments elsewhere outlive their principals."""
        for identity in list(self._resources.below(self._id, IDENTITIES)):
            self._delete(identity)
        self._resources.delete(self._id)

    def _delete(self, identity: Document) -> None:
        self._cloud.directory.delete_service_principal(identity["properties"]["principalId"])
        self._resources.delete(identity["id"])

    def _document(self, full_id: str, type_name: str, location: str, properties: dict[str, Any]) -> Document:
        name = full_id.rpartition("/")[2]
        document = {"id": full_id, "name": name, "type": type_name, "location": location, "tags": {}}
        return {**document, "properties": properties}
