"""`idstack:index:lookAtSecrets`: looks at secrets side by side, before their schedules need them.

The engine calls Check of one resource after another, so each schedule's request to ARM would wait for the one before
it. The program names the addresses at once, at its start; each look serves the first Check of its schedule.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from identity.access.errors import AccessError
from identity.plugin_schema import SecretAddresses, VaultAddress
from plugin import PluginError
from provider.vault_secrets import SecretSeen, VaultSecret

# ARM refills 25 reads a second for each subscription and deployer (request-limits-and-throttling, 2024).
_AT_ONCE: Final = 16

_Address = tuple[str, str, str, str]


class EarlyLooks:
    """The looks that were begun, by address."""

    def __init__(self) -> None:
        self._begun: dict[_Address, Future[SecretSeen]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="early-look")

    def begin(self, args: SecretAddresses) -> None:
        """Begin a look at each of `secretNames` at the rest of the address; does not wait for them."""
        with self._lock:
            for name in args["secretNames"]:
                address: VaultAddress = {
                    "cloud": args["cloud"],
                    "tenantId": args["tenantId"],
                    "vaultId": args["vaultId"],
                    "secretName": name,
                }
                self._begun[_key(address)] = self._pool.submit(_look, address)

    def look(self, address: VaultAddress) -> SecretSeen:
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


def _look(address: VaultAddress) -> SecretSeen:
    return VaultSecret.of(address).look()


def _key(address: VaultAddress) -> _Address:
    return address["cloud"], address["tenantId"], address["vaultId"], address["secretName"]
