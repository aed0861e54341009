"""Microsoft.Storage: what the image registry and the file driver list in the managed resource group."""

from __future__ import annotations

from localcloud.azure.arm.resource_type import ResourceType, SeededType


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (SeededType("Microsoft.Storage/storageAccounts"),)
