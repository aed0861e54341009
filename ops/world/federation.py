"""Reads the issuer's keys and the federated credentials, with which Entra ID compares a service account's token."""

from __future__ import annotations

from http import HTTPStatus

from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.credentials.openid_documents import UnusableIssuerError, keys_of_issuer
from ops.world import managed_identities
from ops.world.expected import FederatedTrust
from ops.world.stack_world import SeenIssuer, SeenManagedIdentity


def read_issuer(azure: AzureClient, address: str) -> SeenIssuer:
    """Read both documents without a credential, as Entra ID does.

    Raises AzureRefusedError without an answer, or for a server error: Entra ID may reach the issuer nevertheless.
    """
    try:
        return SeenIssuer(keys=tuple(sorted(keys_of_issuer(azure.public_document, address))))
    except UnusableIssuerError as error:
        return SeenIssuer(keys=(), problem=str(error))
    except AzureRefusedError as error:
        if error.status is None or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return SeenIssuer(keys=(), problem=" ".join(str(error).split()))


def read_managed_identity(azure: AzureClient, resource_id: str) -> SeenManagedIdentity | None:
    """Read an identity by its ARM id; None without one."""
    managed = managed_identities.read(azure, resource_id)
    if managed is None:
        return None
    return SeenManagedIdentity(
        client_id=managed.client_id,
        trusts=tuple(
            FederatedTrust(issuer=credential.issuer, subject=credential.subject, audience=audience)
            for credential in managed_identities.federated(azure, resource_id)
            for audience in credential.audiences
        ),
    )
