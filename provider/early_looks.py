"""`idstack:index:lookAtSecrets`: looks at secrets side by side, before their schedules need them.

The engine calls Check of one resource after another, so each schedule's request to ARM would wait for the one before
it. The program names the addresses at once, at its start; each look serves the first Check of its schedule.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from identity.azure.errors import AccessError
from plugin import PluginError, Props
from provider.vault_secrets import SecretSeen, VaultSecret

# ARM refills 25 reads a second for each subscription and deployer (request-limits-and-throttling, 2024).
_AT_ONCE: Final = 16

_Address = tuple[str, str, str, str]


class EarlyLooks:
    """The looks that were begun, by address: `cloud`, `tenantId`, `vaultId` and `secretName` of a resource's inputs."""

    def __init__(self) -> None:
        self._begun: dict[_Address, Future[SecretSeen]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="early-look")

    def begin(self, args: Props) -> None:
        """Begin a look at each of `secretNames` at the rest of the address; does not wait for them."""
        with self._lock:
            for name in args["secretNames"]:
                address = {**args, "secretName": name}
                self._begun[_key(address)] = self._pool.submit(_look, address)

    def look(self, address: Mapping[str, Any]) -> SecretSeen:
        """The secret at an address, by the look that was begun if one was.

        A begun look serves once, and one that failed is made again. Raises AccessError; `PluginError` for an unknown
        cloud.
        """
        with self._lock:
            begun = self._begun.pop(_key(address), None)
        if begun is not None:
            try:
                return begun.result()
            except (AccessError, PluginError):
                pass
        return _look(address)


def _look(address: Mapping[str, Any]) -> SecretSeen:
    return VaultSecret.of(address).look()


def _key(address: Mapping[str, Any]) -> _Address:
    return address["cloud"], address["tenantId"], address["vaultId"], address["secretName"]
