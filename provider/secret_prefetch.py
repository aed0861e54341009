"""`idstack:index:prefetchSecrets`: reads secrets in parallel, before their schedules need them.

The engine calls Check of one resource after another, so the schedules' requests to ARM would queue. The program names
all secrets at its start; each result serves the first Check of its schedule.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from identity.azure.errors import AccessError
from identity.plugin_schema import SecretAddresses, VaultAddress
from plugin import PluginError
from provider.vault_secrets import SecretReading, VaultSecret

# ARM refills 25 reads a second for each subscription and deployer (request-limits-and-throttling, 2024).
_AT_ONCE: Final = 16

_Key = tuple[str, str, str, str]


class SecretPrefetch:
    """The reads in progress, by address."""

    def __init__(self) -> None:
        self._started: dict[_Key, Future[SecretReading]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="prefetch")

    def start(self, args: SecretAddresses) -> None:
        """Start to read every secret of `secretNames`; does not wait for the answers."""
        with self._lock:
            for name in args["secretNames"]:
                address: VaultAddress = {
                    "cloud": args["cloud"],
                    "tenantId": args["tenantId"],
                    "vaultId": args["vaultId"],
                    "secretName": name,
                }
                self._started[_key(address)] = self._pool.submit(_read, address)

    def get(self, address: VaultAddress) -> SecretReading:
        """The secret at an address: prefetched if possible, otherwise read now.

        A prefetched result serves once, and a failed one is read again. Raises AccessError; `PluginError` for an
        unknown cloud.
        """
        with self._lock:
            prefetched = self._started.pop(_key(address), None)
        if prefetched is not None:
            try:
                return prefetched.result()
            except (AccessError, PluginError):
                pass
        return _read(address)


def _read(address: VaultAddress) -> SecretReading:
    return VaultSecret.of(address).read()


def _key(address: VaultAddress) -> _Key:
    return address["cloud"], address["tenantId"], address["vaultId"], address["secretName"]
