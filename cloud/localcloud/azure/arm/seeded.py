"""Types that only the seed creates: what HyperShift's components list, and registries."""

from __future__ import annotations

from localcloud.azure.arm.resource_type import ResourceType, SeededType

_NAMES = (
    "Microsoft.Compute/virtualMachines",
    "Microsoft.Compute/virtualMachineScaleSets",
    "Microsoft.Compute/disks",
    "Microsoft.ContainerRegistry/registries",
)


def types() -> tuple[ResourceType, ...]:
    """The types of these namespaces."""
    return tuple(SeededType(name) for name in _NAMES)
