"""What refuses a stack's resources whatever its roles: unregistered resource providers, and management locks.

What cannot be read (with any role in the subscription, locks with Reader) is left out: the run itself tells. So is
Azure Policy, whose definitions are programs that only ARM evaluates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.errors import AccessError

_LOCKS: Final = "/providers/Microsoft.Authorization/locks"
_UNUSABLE: Final = frozenset({"NotRegistered", "Unregistering", "Unregistered"})


def unregistered(azure: AzureClient, subscription: str, namespaces: Iterable[str]) -> list[str]:
    """The resource providers among these that the subscription (an ARM id) cannot use."""
    found = []
    for namespace in namespaces:
        with suppress(AccessError):
            provider = azure.resource(f"{subscription}/providers/{namespace}", resource_types.RESOURCES_LIST_API) or {}
            found += [namespace] if provider.get("registrationState") in _UNUSABLE else []
    return found


def locks(azure: AzureClient, written: Collection[str]) -> dict[str, str]:
    """The level (`CanNotDelete` or `ReadOnly`) of each lock that holds at one of the ARM ids `written`, by its id.

    ARM lists the locks of a resource group, above it and below it (Get-AzResourceLock, `-AtScope`).
    """
    found = {}
    for group in {"/".join(place.split("/")[:5]) for place in written}:
        with suppress(AccessError):
            for lock in azure.resources(f"{group}{_LOCKS}", "2016-09-01"):
                scope = lock["id"].lower().rpartition(_LOCKS.lower())[0]
                if any(f"{place}/".lower().startswith(f"{scope}/") for place in written):
                    found[lock["id"]] = lock["properties"]["level"]
    return found
