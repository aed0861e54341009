"""User-assigned managed identities and their federated credentials, as ARM shows them."""

from __future__ import annotations

from typing import Final

from identity import resource_types
from identity.access.azure_client import AzureClient
from identity.access.records import FederatedCredentialRecord, ManagedIdentityRecord

_TYPE: Final = "providers/Microsoft.ManagedIdentity/userAssignedIdentities"


def read(azure: AzureClient, id: str) -> ManagedIdentityRecord | None:
    """An identity by its ARM id; None if there is none. Raises AzureRefusedError."""
    found = azure.resource(id, resource_types.MANAGED_IDENTITY_API)
    return None if found is None else ManagedIdentityRecord.of(found)


def within(azure: AzureClient, scope: str) -> list[ManagedIdentityRecord]:
    """Those in a subscription or a resource group (its ARM id). Raises AzureRefusedError."""
    found = azure.resources(f"{scope}/{_TYPE}", resource_types.MANAGED_IDENTITY_API)
    return [ManagedIdentityRecord.of(each) for each in found]


def federated(azure: AzureClient, id: str) -> list[FederatedCredentialRecord]:
    """The federated credentials of an identity, by its ARM id. Raises AzureRefusedError."""
    found = azure.resources(f"{id}/federatedIdentityCredentials", resource_types.MANAGED_IDENTITY_API)
    return [FederatedCredentialRecord.of(each) for each in found]
