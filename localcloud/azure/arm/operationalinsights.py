"""Microsoft.OperationalInsights: Log Analytics workspaces, which logs can be sent to. Nothing arrives in them."""

from __future__ import annotations

from localcloud.azure.arm.resource_type import ResourceType, SeededType

WORKSPACES = "Microsoft.OperationalInsights/workspaces"


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (SeededType(WORKSPACES),)
