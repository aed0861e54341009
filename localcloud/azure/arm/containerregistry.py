"""Microsoft.ContainerRegistry: the registry that nodes pull images from. Images are not emulated."""

from __future__ import annotations

from localcloud.azure.arm.resource_type import ResourceType, SeededType

REGISTRIES = "Microsoft.ContainerRegistry/registries"


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (SeededType(REGISTRIES),)
