"""Types that only the seed creates: what HyperShift's components list, registries and Log Analytics workspaces."""

from __future__ import annotations

from localcloud.azure.arm.resource_type import ResourceType, SeededType

WORKSPACES = "Microsoft.OperationalInsights/workspaces"
_NAMES = (
    "Microsoft.Compute/virtualMachines",
    "Microsoft.Compute/virtualMachineScaleSets",
    "Microsoft.Compute/disks",
    "Microsoft.ContainerRegistry/registries",
    WORKSPACES,
)


def types() -> tuple[ResourceType, ...]:
    """The types of these namespaces."""
    return tuple(SeededType(name) for name in _NAMES)
