"""Microsoft.Compute: what the disk driver and the Cluster API provider list, and the node pool with its identities."""

from __future__ import annotations

from localcloud.azure.arm.resource_type import ResourceType, SeededType


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (
        SeededType("Microsoft.Compute/virtualMachines"),
        SeededType("Microsoft.Compute/virtualMachineScaleSets"),
        SeededType("Microsoft.Compute/disks"),
    )
