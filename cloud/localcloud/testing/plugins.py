"""The emulated provider plugins: what each has, and one that a test configures (extra `plugins` of this package)."""

from emulated.azure_native.resource import ArmResource
from emulated.azure_native.rows import ResourceRow
from emulated.azure_native.session import ArmSession
from emulated.azure_native.table import RESOURCES as AZURE_NATIVE
from emulated.azuread.provider import RESOURCES as AZUREAD
from emulated.azuread.provider import AzureAd
from emulated.client import RefusalError
from emulated.kubernetes import resource as kubernetes_resource
from emulated.kubernetes.provider import Kubernetes
from emulated.settings import AzureProviderSettings

__all__ = [
    "AZUREAD",
    "AZURE_NATIVE",
    "ArmResource",
    "ArmSession",
    "AzureAd",
    "AzureProviderSettings",
    "Kubernetes",
    "RefusalError",
    "ResourceRow",
    "kubernetes_resource",
]
