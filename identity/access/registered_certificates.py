"""The certificates that Entra ID has registered at an application (Graph's `keyCredentials`)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import datetime
from typing import Final

from identity.access.azure_client import AzureClient, AzureObject
from identity.credentials.certificate import key_id

_SHA1_BYTES: Final = 20


def thumbprint(credential: AzureObject) -> str | None:
    """SHA-1 of the certificate in upper-case hexadecimal; None for a credential that does not tell.

    Graph gives the thumbprint's bytes as base64; some tools wrote its hexadecimal digits instead.
    """
    identifier = credential.get("customKeyIdentifier")
    if not identifier:
        return None
    try:
        raw = base64.b64decode(identifier, validate=True)
    except binascii.Error:
        return str(identifier).upper()
    return raw.hex().upper() if len(raw) == _SHA1_BYTES else str(identifier).upper()


def thumbprint_of_ours(credential: AzureObject) -> str | None:
    """The thumbprint of a certificate under the key id that this program gives it; None for any other credential."""
    found = thumbprint(credential)
    return found if found and str(credential.get("keyId", "")).lower() == key_id(found) else None


def begins_of_ours(azure: AzureClient, application: str) -> frozenset[datetime] | None:
    """When the certificates of this program's at an application (its path in Graph) begin, in UTC and whole seconds.

    None for an application that is gone. Raises AzureRefused.
    """
    found = azure.directory_object(f"{application}?$select=keyCredentials")
    if found is None:
        return None
    ours = (each for each in found.get("keyCredentials") or [] if thumbprint_of_ours(each))
    return frozenset(datetime.fromisoformat(each["startDateTime"]).replace(microsecond=0) for each in ours)


def withdraw(azure: AzureClient, application: str, key_id: str) -> None:
    """Remove the certificate registered under this id from an application (its path in Graph), if it is there.

    Raises AzureRefused.
    """
    _remove(azure, application, lambda each: str(each.get("keyId", "")).lower() == key_id.lower())


def withdraw_all_but(azure: AzureClient, application: str, current: str) -> None:
    """Remove every certificate of this program's from an application but the one with this thumbprint.

    It takes along those that no state knows of. Raises AzureRefused.
    """
    _remove(azure, application, lambda each: thumbprint_of_ours(each) not in (None, current))


def _remove(azure: AzureClient, application: str, is_meant: Callable[[AzureObject], bool]) -> None:
    found = azure.directory_object(f"{application}?$select=keyCredentials") or {}
    registered = found.get("keyCredentials", [])
    others = [each for each in registered if not is_meant(each)]
    if len(others) < len(registered):
        azure.change_directory_object(application, {"keyCredentials": others})
