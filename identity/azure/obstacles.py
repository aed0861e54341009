"""What refuses a stack's resources whatever its roles: resource providers, locks, and policies of the tenant.

What cannot be read (with any role in the subscription; locks with Reader, a policy with Graph's Policy.Read.All) is
left out: the run itself tells. So is Azure Policy, whose definitions are programs that only ARM evaluates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.errors import AccessError
from identity.credentials import rfc3339

_LOCKS: Final = "/providers/Microsoft.Authorization/locks"
_APP_POLICY: Final = "/policies/defaultAppManagementPolicy"
_DAYS: Final = re.compile(r"P(\d+)D")
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


def certificate_days(azure: AzureClient) -> int | None:
    """The whole days that the tenant allows a certificate of an application made now; None without a known limit.

    Source: Graph v1.0, keyCredentialConfiguration. It may spare callers with a custom security attribute
    (`excludeActors`), which are not known here, and applications that were made before a date.
    """
    with suppress(AccessError):
        policy = azure.directory_object(_APP_POLICY) or {}
        restrictions = (policy.get("applicationRestrictions") or {}).get("keyCredentials") or ()
        for one in restrictions if policy.get("isEnabled") else ():
            is_held = one["restrictionType"] == "asymmetricKeyLifetime" and one.get("state") != "disabled"
            since = one.get("restrictForAppsCreatedAfterDateTime") or ""
            if is_held and not one.get("excludeActors") and since <= rfc3339.render(rfc3339.utc_now()):
                return int(days[1]) if (days := _DAYS.match(one.get("maxLifetime") or "")) else None
    return None
