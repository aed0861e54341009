"""What refuses a stack's resources whatever its roles: unregistered resource providers, and management locks.

A registration is read with any role in the subscription, locks with the role Reader. What cannot be read is left out:
the run itself tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from identity.azure.client import AzureClient
from identity.azure.errors import AccessError

_PROVIDERS_API: Final = "2021-04-01"
_LOCKS_API: Final = "2016-09-01"
_LOCKS: Final = "/providers/Microsoft.Authorization/locks"
_UNUSABLE: Final = frozenset({"NotRegistered", "Unregistering", "Unregistered"})


def unregistered(azure: AzureClient, subscription: str, namespaces: Iterable[str]) -> list[str]:
    """The resource providers among these that the subscription (an ARM id) cannot use."""
    found = []
    for namespace in namespaces:
        with suppress(AccessError):
            provider = azure.resource(f"{subscription}/providers/{namespace}", _PROVIDERS_API) or {}
            found += [namespace] if provider.get("registrationState") in _UNUSABLE else []
    return found


def locks(azure: AzureClient, groups: Iterable[str], written: Collection[str]) -> dict[str, str]:
    """The level (`CanNotDelete` or `ReadOnly`) of each lock that holds at one of the ARM ids `written`, by its id.

    ARM lists the locks of each of the `groups`, above it and below it (Get-AzResourceLock, `-AtScope`).
    """
    found = {}
    for group in groups:
        with suppress(AccessError):
            for lock in azure.resources(f"{group}{_LOCKS}", _LOCKS_API):
                scope = lock["id"].lower().rpartition(_LOCKS.lower())[0]
                if any(f"{place}/".lower().startswith(f"{scope}/") for place in written):
                    found[lock["id"]] = lock["properties"]["level"]
    return found
