"""Reads user-assigned managed identities and their federated credentials from ARM."""

from __future__ import annotations

from typing import Final

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.records import FederatedCredentialRecord, ManagedIdentityRecord

_TYPE: Final = "providers/Microsoft.ManagedIdentity/userAssignedIdentities"


def read(azure: AzureClient, id: str) -> ManagedIdentityRecord | None:
    """An identity by its ARM id; None without one. Raises AzureRefusedError."""
    resource = azure.resource(id, resource_types.MANAGED_IDENTITY_API)
    return None if resource is None else ManagedIdentityRecord.of(resource)


def within(azure: AzureClient, scope: str) -> list[ManagedIdentityRecord]:
    """The identities in a subscription or a resource group (its ARM id). Raises AzureRefusedError."""
    resources = azure.resources(f"{scope}/{_TYPE}", resource_types.MANAGED_IDENTITY_API)
    return [ManagedIdentityRecord.of(resource) for resource in resources]


def federated(azure: AzureClient, id: str) -> list[FederatedCredentialRecord]:
    """The federated credentials of an identity, by its ARM id. Raises AzureRefusedError."""
    resources = azure.resources(f"{id}/federatedIdentityCredentials", resource_types.MANAGED_IDENTITY_API)
    return [FederatedCredentialRecord.of(resource) for resource in resources]
