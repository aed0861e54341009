"""The secrets of a vault with their tags, as ARM shows them to a Reader."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from identity.access.azure_client import AzureClient, AzureObject

_KEY_VAULT: Final = "2024-11-01"
# ARM refills 25 reads a second for each subscription and caller (request-limits-and-throttling, 2024).
_AT_ONCE: Final = 8


def read(azure: AzureClient, vault_id: str) -> list[AzureObject]:
    """Every secret, each asked for by itself, as ARM's list may have no tags (docs/decisions/0038).

    One that is deleted meanwhile is left out. Raises AzureRefused.
    """
    listed = [str(each["id"]) for each in azure.resources(f"{vault_id}/secrets", _KEY_VAULT)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda each: azure.resource(each, _KEY_VAULT), listed)
        return [each for each in found if each is not None]
