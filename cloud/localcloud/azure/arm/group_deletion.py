"""The deletion of a resource group with its content, which Azure completes long after it has accepted it.

A deletion is a document with its completion time. Every request to ARM first completes what is due, so nothing has
to run in between. Sources: REST reference of resource groups (202 with Location), azure-docs
`resource-manager/management/delete-resource-group`.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any, Final

from localcloud.azure.arm import errors
from localcloud.azure.arm.managedidentity import IDENTITIES
from localcloud.azure.arm.network_rules import SECURITY_GROUPS, SUBNETS, reference
from localcloud.azure.arm.storage import empty_account
from localcloud.azure.blob.accounts import ACCOUNTS
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import KIND, Resources
from localcloud.core import clock
from localcloud.core.store import Document

_DELETIONS: Final = "arm-deletion"
# Types whose own deletion does more than a group's does here: soft delete, node resource groups.
_KEPT_OUT: Final = ("microsoft.keyvault/vaults", "microsoft.containerservice/managedclusters")


def begin(cloud: LocalAzure, group: Document) -> str:
    """Begin to delete a group; returns the operation's id. Raises 501 for content whose deletion is not emulated."""
    content = _content(cloud, group)
    for resource in content:
        if resource["type"].lower() in _KEPT_OUT:
            raise errors.not_emulated(f"the deletion of a resource group that holds a {resource['type']}")
    operation = uuid.uuid4().hex
    ends = clock.now() + timedelta(seconds=cloud.faults.resource_group_deletion)
    with cloud.store.transaction():
        Resources(cloud.store).put({**group, "properties": {"provisioningState": "Deleting"}})
        cloud.store.put(_DELETIONS, operation, {"group": group["id"], "ends": ends.isoformat()})
    return operation


def end_due(cloud: LocalAzure) -> None:
    """Delete the groups whose time has come."""
    for operation, deletion in cloud.store.items(_DELETIONS):
        if "result" not in deletion and datetime.fromisoformat(deletion["ends"]) <= clock.now():
            with cloud.store.transaction():
                cloud.store.put(_DELETIONS, operation, {**deletion, "result": _deleted(cloud, deletion["group"])})


def result(cloud: LocalAzure, operation: str) -> dict[str, Any] | None:
    """None while the deletion is in progress, then {} or the error; raises KeyError for an unknown operation."""
    deletion = cloud.store.get(_DELETIONS, operation)
    if deletion is None:
        raise KeyError(operation)
    outcome: dict[str, Any] | None = deletion.get("result")
    return outcome


def _deleted(cloud: LocalAzure, group_id: str) -> dict[str, Any]:
    """Delete the group, unless a resource outside refers to its content: then all of it stays."""
    resources = Resources(cloud.store)
    group = resources.get(group_id)
    if group is None:
        return {}
    if used := sorted(_used_from_outside(cloud, group)):
        resources.put({**group, "properties": {"provisioningState": "Succeeded"}})
        return {
            "code": "ResourceGroupDeletionBlocked",
            "message": f"Deletion of resource group '{group['name']}' failed as resources with identifiers "
            f"'{','.join(used)}' could not be deleted. The provisioning state of the resource group will be rolled "
            "back.",
        }
    for resource in _content(cloud, group):
        if resource["type"] == IDENTITIES:
            cloud.directory.delete_service_principal(resource["properties"]["principalId"])
        if resource["type"] == ACCOUNTS:
            empty_account(cloud.store, resource["name"])
    resources.delete(group_id)
    return {}


def _used_from_outside(cloud: LocalAzure, group: Document) -> set[str]:
    """Security groups of subnets that are in another group."""
    inside = f"{group['id'].lower()}/"
    subnets = Resources(cloud.store).below(f"/subscriptions/{cloud.subscription_id}", SUBNETS)
    used = {
        reference(subnet["properties"].get("networkSecurityGroup")) or ""
        for subnet in subnets
        if not subnet["id"].lower().startswith(inside)
    }
    return {
        f"{SECURITY_GROUPS}/{resource_id.rpartition('/')[2]}"
        for resource_id in used
        if resource_id.lower().startswith(inside)
    }


def _content(cloud: LocalAzure, group: Document) -> list[Document]:
    return [document for _, document in cloud.store.items(KIND, f"{group['id'].lower()}/")]
