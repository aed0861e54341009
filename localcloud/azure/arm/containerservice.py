"""Microsoft.ContainerService: the management cluster.

`addonProfiles.azureKeyvaultSecretsProvider.identity` in its answer is the key-vault-user of a stack on AKS.
"""

from __future__ import annotations

from localcloud.azure.arm.resource_type import ResourceType, SeededType


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (SeededType("Microsoft.ContainerService/managedClusters"),)
