"""Role assignments as ARM shows them."""

from __future__ import annotations

from typing import Final

from identity import resource_types
from identity.access.azure_client import AzureClient
from identity.access.records import RoleAssignmentRecord

_TYPE: Final = "providers/Microsoft.Authorization/roleAssignments"


def read(azure: AzureClient, id: str) -> RoleAssignmentRecord | None:
    """An assignment by its ARM id; None if there is none. Raises AzureRefusedError."""
    found = azure.resource(id, resource_types.AUTHORIZATION_API)
    return None if found is None else RoleAssignmentRecord.of(found)


def named(azure: AzureClient, scope: str, name: str) -> RoleAssignmentRecord | None:
    """An assignment by its name at a scope; None if there is none. Raises AzureRefusedError."""
    return read(azure, f"{scope}/{_TYPE}/{name}")


def at(azure: AzureClient, scope: str, condition: str | None = None) -> list[RoleAssignmentRecord]:
    """Those at a scope, above and below it, for which a condition of OData holds. Raises AzureRefusedError."""
    found = azure.resources(f"{scope}/{_TYPE}", resource_types.AUTHORIZATION_API, condition)
    return [RoleAssignmentRecord.of(each) for each in found]
