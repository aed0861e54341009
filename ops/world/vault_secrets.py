"""Reads the metadata of a vault's secrets from ARM, with the role Reader."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.records import SecretMetadata
from identity.naming import secret_id

# ARM refills 25 reads a second for each subscription and caller (request-limits-and-throttling, 2024).
_MAX_WORKERS: Final = 8


def read(azure: AzureClient, vault_id: str) -> list[SecretMetadata]:
    """Every secret, each in a separate request, as ARM's list may have no tags (docs/decisions/0038).

    Leaves out secrets that are deleted meanwhile. Raises AzureRefusedError.
    """
    names = [str(resource["name"]) for resource in azure.resources(f"{vault_id}/secrets", resource_types.KEY_VAULT_API)]
    with ThreadPoolExecutor(_MAX_WORKERS) as pool:
        secrets = pool.map(lambda name: read_one(azure, vault_id, name), names)
        return [secret for secret in secrets if secret is not None]


def read_one(azure: AzureClient, vault_id: str, name: str) -> SecretMetadata | None:
    """A secret by its name; None without one. Raises AzureRefusedError."""
    resource = azure.resource(secret_id(vault_id, name), resource_types.KEY_VAULT_API)
    return None if resource is None else SecretMetadata.of(resource)
