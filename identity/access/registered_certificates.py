"""The certificates that Entra ID has registered at an application (Graph's `keyCredentials`)."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from identity.access.azure_client import AzureClient, AzureObject

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


def withdraw(azure: AzureClient, application: str, key_id: str) -> None:
    """Remove the certificate registered under this id from an application (`/applications/<object id>`), if it is.

    Raises AzureRefused.
    """
    found = azure.directory_object(f"{application}?$select=keyCredentials") or {}
    registered = found.get("keyCredentials", [])
    others = [each for each in registered if str(each.get("keyId", "")).lower() != key_id.lower()]
    if len(others) < len(registered):
        azure.change_directory_object(application, {"keyCredentials": others})
