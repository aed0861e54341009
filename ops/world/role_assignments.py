"""Reads role assignments and definitions from ARM."""

from __future__ import annotations

from typing import Final

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.records import RoleAssignmentRecord
from ops.world.stack_world import SeenPermission, SeenRoleDefinition

_TYPE: Final = "providers/Microsoft.Authorization/roleAssignments"
_DEFINITIONS: Final = "providers/Microsoft.Authorization/roleDefinitions"


def read(azure: AzureClient, id: str) -> RoleAssignmentRecord | None:
    """An assignment by its ARM id; None without one. Raises AzureRefusedError."""
    resource = azure.resource(id, resource_types.AUTHORIZATION_API)
    return None if resource is None else RoleAssignmentRecord.of(resource)


def named(azure: AzureClient, scope: str, name: str) -> RoleAssignmentRecord | None:
    """An assignment by its name at a scope; None without one. Raises AzureRefusedError."""
    return read(azure, f"{scope}/{_TYPE}/{name}")


def at(azure: AzureClient, scope: str, condition: str | None = None) -> list[RoleAssignmentRecord]:
    """The assignments at a scope, above and below it that match an OData filter. Raises AzureRefusedError."""
    resources = azure.resources(f"{scope}/{_TYPE}", resource_types.AUTHORIZATION_API, condition)
    return [RoleAssignmentRecord.of(resource) for resource in resources]


def definition(azure: AzureClient, scope: str, guid: str) -> SeenRoleDefinition | None:
    """A definition by its GUID, at a scope where the caller has a role; None without one. Raises AzureRefusedError."""
    resource = azure.resource(f"{scope}/{_DEFINITIONS}/{guid}", resource_types.AUTHORIZATION_API)
    if resource is None:
        return None
    properties = resource["properties"]
    return SeenRoleDefinition(
        name=properties["roleName"],
        is_custom=properties.get("type") == "CustomRole",
        permissions=tuple(
            SeenPermission(
                actions=tuple(permission.get("actions") or ()),
                exceptions=tuple(permission.get("notActions") or ()),
                data_actions=tuple(permission.get("dataActions") or ()),
                data_exceptions=tuple(permission.get("notDataActions") or ()),
            )
            for permission in properties["permissions"]
        ),
    )
