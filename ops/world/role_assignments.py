"""Reads role assignments from ARM."""

from __future__ import annotations

from typing import Final

from identity import resource_types
from identity.access.azure_client import AzureClient
from identity.access.records import RoleAssignmentRecord

_TYPE: Final = "providers/Microsoft.Authorization/roleAssignments"


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
