"""Key Vault's data plane: secrets, RSA keys and certificates, for the clients of Microsoft's SDKs and the CSI provider.

Network rules of a vault are stored by ARM and not enforced here: every caller is on this machine. Access policies are
not emulated, ARM refuses such a vault. Source: Key Vault REST 7.4 and the paths that azure-keyvault-secrets, -keys and
-certificates use. Left out: backup, deleting keys and changing their attributes, signing.
"""

from __future__ import annotations

from starlette.applications import Starlette

from localcloud.azure.keyvault import errors
from localcloud.azure.keyvault.certificate_plane import CertificatePlane
from localcloud.azure.keyvault.guard import VaultGuard
from localcloud.azure.keyvault.key_plane import KeyPlane
from localcloud.azure.keyvault.secret_plane import SecretPlane
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import service_app


def app(cloud: LocalAzure) -> Starlette:
    """The data plane of every vault of the local cloud, to be served over TLS."""
    guard = VaultGuard(cloud)
    planes = (SecretPlane(guard), KeyPlane(guard), CertificatePlane(guard))
    routes = [route for plane in planes for route in plane.routes()]
    return service_app("keyvault", routes, faults=cloud.faults, holder=cloud.holder, render=errors.render)
