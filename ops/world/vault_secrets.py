"""The secrets of a vault as ARM shows them to a Reader: everything but the values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from identity import resource_types
from identity.access.azure_client import AzureClient
from identity.access.records import SecretMetadata
from identity.naming import secret_id

# ARM refills 25 reads a second for each subscription and caller (request-limits-and-throttling, 2024).
_AT_ONCE: Final = 8


def read(azure: AzureClient, vault_id: str) -> list[SecretMetadata]:
    """Every secret, each asked for by itself, as ARM's list may have no tags (docs/decisions/0038).

    One that is deleted meanwhile is left out. Raises AzureRefusedError.
    """
    listed = [str(each["name"]) for each in azure.resources(f"{vault_id}/secrets", resource_types.KEY_VAULT_API)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda name: read_one(azure, vault_id, name), listed)
        return [each for each in found if each is not None]


def read_one(azure: AzureClient, vault_id: str, name: str) -> SecretMetadata | None:
    """A secret by its name; None if there is none. Raises AzureRefusedError."""
    found = azure.resource(secret_id(vault_id, name), resource_types.KEY_VAULT_API)
    return None if found is None else SecretMetadata.of(found)
