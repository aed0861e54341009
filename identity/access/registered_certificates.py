"""The certificates that Entra ID has registered at an application (Graph's `keyCredentials`).

Graph removes none by itself: the list is written again without it. A list that was read from a replica which has not
seen the write of a moment before would restore what was removed, or remove what was added. So a list is written back
only when several reads in a row gave it, and read until as many show what was meant.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from identity.access.azure_client import AzureClient, AzureObject
from identity.access.errors import AzureRefusedError
from identity.credentials import rfc3339
from identity.credentials.certificate import key_id

Pause: TypeAlias = Callable[[float], None]
"""Waits so many seconds, as `time.sleep`."""

_SHA1_BYTES: Final = 20
# As azuread waits for replicas (hashicorp/terraform-provider-azuread `application_certificate_resource.go`): reads in a
# row, and the seconds between two.
_READS_IN_A_ROW: Final = 5
_BETWEEN_READS: Final = 1.0
# Two minutes. After a refusal a person runs the command again.
_READS: Final = 120


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


@dataclass(frozen=True)
class RegisteredKey:
    """A certificate at an application or a service principal; `thumbprint` is None for one that does not tell."""

    key_id: str
    thumbprint: str | None
    begins: datetime
    ends: datetime

    @property
    def is_ours(self) -> bool:
        """Whether this program registered it."""
        return self.thumbprint is not None and self.key_id.lower() == key_id(self.thumbprint)


def registered(holder: AzureObject) -> list[RegisteredKey]:
    """Those of an application or a service principal, as Graph gives it."""
    return [
        RegisteredKey(
            str(each["keyId"]),
            thumbprint(each),
            rfc3339.parse(each["startDateTime"]),
            rfc3339.parse(each["endDateTime"]),
        )
        for each in holder.get("keyCredentials") or ()
    ]


def registered_at(azure: AzureClient, application: str) -> list[RegisteredKey] | None:
    """Those of an application (its path in Graph), None for one that does not exist. Raises AzureRefusedError."""
    found = azure.directory_object(f"{application}?$select=keyCredentials")
    return None if found is None else registered(found)


def begins_of_ours(azure: AzureClient, application: str) -> frozenset[datetime] | None:
    """When the certificates of this program's at an application (its path in Graph) begin, in UTC and whole seconds.

    None for an application that is gone. Raises AzureRefusedError.
    """
    found = registered_at(azure, application)
    return None if found is None else frozenset(each.begins.replace(microsecond=0) for each in found if each.is_ours)


def withdraw(
    azure: AzureClient, application: str, key_id: str, pause: Pause = time.sleep, *, may_be_last: bool = False
) -> None:
    """Remove the certificate registered under this id from an application (its path in Graph), if it is there.

    Unless it `may_be_last`, a list without another certificate is taken for an old one. Raises AzureRefusedError.
    """

    def is_meant(each: AzureObject) -> bool:
        return str(each.get("keyId", "")).lower() == key_id.lower()

    def is_whole(listed: Sequence[AzureObject]) -> bool:
        return may_be_last or any(not is_meant(each) for each in listed)

    if any(map(is_meant, _listed(azure, application))):
        missing = f"there was no other certificate at {application} than that of the key id {key_id}"
        _remove(azure, application, is_meant, is_whole, missing, pause)


def withdraw_all_but(
    azure: AzureClient, application: str, current: str | None, begins: datetime, pause: Pause = time.sleep
) -> None:
    """Remove every certificate of this program's from an application but the one with this thumbprint.

    It takes along those that no state knows of. The thumbprint is the secret's tag, None if it has none. Anybody who
    writes secrets may edit it, so its registration has to begin when the current certificate does. Raises
    AzureRefusedError.
    """
    if current is None:
        raise AzureRefusedError("the secret has no tag `thumbprint`: somebody else wrote it. Nothing was removed")

    def is_whole(listed: Sequence[AzureObject]) -> bool:
        found = [each for each in listed if thumbprint_of_ours(each) == current]
        for each in found:
            if (start := rfc3339.parse(each["startDateTime"])) != begins:
                raise AzureRefusedError(
                    f"{current}, which the secret's tag `thumbprint` names, begins at {rfc3339.render(start)} at "
                    f"{application}, and the current certificate at {rfc3339.render(begins)}: somebody edited the tag. "
                    "Nothing was removed"
                )
        return bool(found)

    missing = (
        f"{application} did not have {current}, which the secret's tag `thumbprint` names: Entra ID's replicas are "
        "late, somebody took it out, or edited the tag"
    )
    _remove(azure, application, lambda each: thumbprint_of_ours(each) not in (None, current), is_whole, missing, pause)


def withdraw_all(azure: AzureClient, application: str, pause: Pause = time.sleep) -> None:
    """Remove every certificate from an application, also foreign ones. Raises AzureRefusedError."""
    azure.change_directory_object(application, {"keyCredentials": []})
    if _agreed(azure, application, lambda listed: not listed, pause) is None:
        raise AzureRefusedError(_late(application))


def _remove(
    azure: AzureClient,
    application: str,
    is_meant: Callable[[AzureObject], bool],
    is_whole: Callable[[Sequence[AzureObject]], bool],
    missing: str,
    pause: Pause,
) -> None:
    """`is_whole` tells a list that may be written back from an old one, and `missing` says what that one lacks."""
    listed = _agreed(azure, application, is_whole, pause)
    if listed is None:
        raise AzureRefusedError(f"for two minutes, {missing}. Nothing was removed")
    kept = [each for each in listed if not is_meant(each)]
    if len(kept) == len(listed):
        return
    azure.change_directory_object(application, {"keyCredentials": kept})

    def is_done(listed: Sequence[AzureObject]) -> bool:
        return not any(map(is_meant, listed)) and _key_ids(kept) <= _key_ids(listed)

    if _agreed(azure, application, is_done, pause) is None:
        raise AzureRefusedError(_late(application))


def _agreed(
    azure: AzureClient, application: str, is_so: Callable[[Sequence[AzureObject]], bool], pause: Pause
) -> Sequence[AzureObject] | None:
    """The list that several reads in a row gave, and for which this is so; None if there was none in two minutes."""
    before: set[str] | None = None
    in_a_row = 0
    for _ in range(_READS):
        listed = _listed(azure, application)
        found = _key_ids(listed)
        in_a_row = (in_a_row + 1 if found == before else 1) if is_so(listed) else 0
        before = found
        if in_a_row == _READS_IN_A_ROW:
            return listed
        pause(_BETWEEN_READS)
    return None


def _listed(azure: AzureClient, application: str) -> Sequence[AzureObject]:
    found = azure.directory_object(f"{application}?$select=keyCredentials") or {}
    listed: Sequence[AzureObject] = found.get("keyCredentials", [])
    return listed


def _key_ids(listed: Sequence[AzureObject]) -> set[str]:
    return {str(each.get("keyId", "")).lower() for each in listed}


def _late(application: str) -> str:
    return (
        f"certificates were removed from {application}, and two minutes later some are listed again, or others are "
        "missing: somebody else writes the list as well, or Entra ID's replicas are late"
    )
