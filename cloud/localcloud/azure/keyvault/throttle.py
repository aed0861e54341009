"""Key Vault's limits: transactions of one vault by all clients in ten seconds.

Source of rule and figures: Microsoft Learn, "Azure Key Vault service limits" and "Azure Key Vault throttling guidance".
Left out: the subscription's own limit, five times that of a vault, and that larger keys cost more. A secret that ARM
writes is counted at ARM alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from localcloud.azure.keyvault import errors
from localcloud.azure.keyvault.vaults import KeyVault
from localcloud.azure.shared.token_buckets import TokenBuckets

# By method and path of the route.
_CREATED: Final = frozenset({("PUT", "/secrets/{name}"), ("POST", "/certificates/{name}/import")})
_CREATED_KEY: Final = ("POST", "/keys/{name}/create")


class VaultThrottle:
    """Counts requests. `limits` has (bucket size, refilled per second) for `create`, `create_key`, `key`, `other`."""

    def __init__(self, limits: Mapping[str, tuple[float, float]]) -> None:
        self._buckets = TokenBuckets(limits)

    def take(self, vault: KeyVault, kind: str) -> None:
        """Count one request to a vault; raises VaultError, 429, when the limit is reached. Such a request is not
        counted ("Azure Key Vault throttling guidance").
        """
        holder = vault.name.lower()
        if self._buckets.wait(holder, kind):
            raise errors.throttled()
        self._buckets.take(holder, kind)


def kind_of(method: str, path: str) -> str:
    """Which limit the requests of a route count for."""
    if (method, path) in _CREATED:
        return "create"
    if (method, path) == _CREATED_KEY:
        return "create_key"
    return "key" if path.startswith("/keys") else "other"
