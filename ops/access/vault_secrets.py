"""The secrets of a vault with their tags, as ARM shows them to a Reader."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject

# ARM refills 25 reads a second for each subscription and caller (request-limits-and-throttling, 2024).
_AT_ONCE: Final = 8


def read(azure: AzureClient, vault_id: str) -> list[AzureObject]:
    """Every secret, each asked for by itself, as ARM's list may have no tags (docs/decisions/0038).

    One that is deleted meanwhile is left out. Raises AzureRefusedError.
    """
    listed = [str(each["id"]) for each in azure.resources(f"{vault_id}/secrets", resource_types.KEY_VAULT_API)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda each: azure.resource(each, resource_types.KEY_VAULT_API), listed)
        return [each for each in found if each is not None]
