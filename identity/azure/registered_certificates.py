"""The certificates that Entra ID has registered at an application (Graph's `keyCredentials`).

Graph cannot remove a single one: the whole list is written again. A list from a replica that has not seen a recent
write would restore what was removed, or remove what was added. So a list is written back only if several consecutive
reads returned it, and read until as many show the result.
"""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self, TypeAlias

from identity.azure.client import AzureClient, AzureObject
from identity.azure.errors import AccessError, AzureRefusedError
from identity.credentials import rfc3339
from identity.credentials.certificate import key_id

Pause: TypeAlias = Callable[[float], None]
"""Waits for seconds, as `time.sleep`."""

_SHA1_BYTES: Final = 20
_APP_POLICY: Final = "/policies/defaultAppManagementPolicy"
_DAYS: Final = re.compile(r"P(\d+)D")
# As azuread waits for replicas (hashicorp/terraform-provider-azuread `application_certificate_resource.go`):
# consecutive reads, and the seconds between them.
_READS_IN_A_ROW: Final = 5
_BETWEEN_READS: Final = 1.0
# Two minutes. After a refusal a person runs the command again.
_READS: Final = 120


def thumbprint(credential: AzureObject) -> str | None:
    """SHA-1 of the certificate in upper-case hexadecimal; None if the credential does not have it.

    Graph returns the thumbprint's bytes in base64; some tools wrote its hexadecimal digits instead.
    """
    identifier = credential.get("customKeyIdentifier")
    if not identifier:
        return None
    try:
        raw = base64.b64decode(identifier, validate=True)
    except binascii.Error:
        return str(identifier).upper()
    return raw.hex().upper() if len(raw) == _SHA1_BYTES else str(identifier).upper()


@dataclass(frozen=True)
class RegisteredKey:
    """A certificate at an application or a service principal; `thumbprint` is None if Graph does not have it.

    Both dates are in UTC, `begins` in whole seconds.
    """

    key_id: str
    thumbprint: str | None
    begins: datetime
    ends: datetime

    @classmethod
    def of(cls, credential: AzureObject) -> Self:
        """A `keyCredential` of Graph."""
        return cls(
            str(credential["keyId"]),
            thumbprint(credential),
            rfc3339.parse(credential["startDateTime"]).replace(microsecond=0),
            rfc3339.parse(credential["endDateTime"]),
        )

    @property
    def is_ours(self) -> bool:
        """Whether this program registered it."""
        return self.thumbprint is not None and self.key_id.lower() == key_id(self.thumbprint)


def registered(holder: AzureObject) -> list[RegisteredKey]:
    """The certificates of an application or a service principal, as Graph returns it."""
    return [RegisteredKey.of(credential) for credential in holder.get("keyCredentials") or ()]


def registered_at(azure: AzureClient, application: str) -> list[RegisteredKey] | None:
    """The certificates of an application (its path in Graph), None if it does not exist. Raises AzureRefusedError."""
    holder = azure.directory_object(f"{application}?$select=keyCredentials")
    return None if holder is None else registered(holder)


def withdraw(
    azure: AzureClient, application: str, key_id: str, pause: Pause = time.sleep, *, may_be_last: bool = False
) -> None:
    """Remove the certificate registered under this id from an application (its path in Graph), if it is there.

    Unless it `may_be_last`, a list without another certificate counts as outdated. Raises AzureRefusedError.
    """

    def is_meant(credential: AzureObject) -> bool:
        return str(credential.get("keyId", "")).lower() == key_id.lower()

    def is_whole(listed: Sequence[AzureObject]) -> bool:
        return may_be_last or any(not is_meant(credential) for credential in listed)

    if any(map(is_meant, _listed(azure, application))):
        missing = f"there was no other certificate at {application} than that of the key id {key_id}"
        _remove(azure, application, is_meant, is_whole, missing, pause)


def withdraw_all_but(
    azure: AzureClient, application: str, current: str | None, begins: datetime, pause: Pause = time.sleep
) -> None:
    """Remove all of this program's certificates from an application except the one with this thumbprint.

    Certificates that no state knows are removed as well. The thumbprint is the secret's tag, None if it has none.
    Anybody who writes secrets may edit the tag, so its registration has to begin when the current certificate does.
    Raises AzureRefusedError.
    """
    if current is None:
        raise AzureRefusedError("the secret has no tag `thumbprint`: somebody else wrote it. Nothing was removed")

    def is_meant(credential: AzureObject) -> bool:
        key = RegisteredKey.of(credential)
        return key.is_ours and key.thumbprint != current

    def is_whole(listed: Sequence[AzureObject]) -> bool:
        current_ones = [key for key in map(RegisteredKey.of, listed) if key.is_ours and key.thumbprint == current]
        for key in current_ones:
            if key.begins != begins:
                raise AzureRefusedError(
                    f"{current}, which the secret's tag `thumbprint` names, begins at {rfc3339.render(key.begins)} at "
                    f"{application}, and the current certificate at {rfc3339.render(begins)}: somebody edited the tag. "
                    "Nothing was removed"
                )
        return bool(current_ones)

    missing = (
        f"{application} did not have {current}, which the secret's tag `thumbprint` names: Entra ID's replicas are "
        "late, somebody took it out, or edited the tag"
    )
    _remove(azure, application, is_meant, is_whole, missing, pause)


def withdraw_all(azure: AzureClient, application: str, pause: Pause = time.sleep) -> None:
    """Remove every certificate from an application, including foreign ones. Raises AzureRefusedError."""
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
    """`is_whole` distinguishes a current list from an outdated one, and `missing` says what the latter lacks."""
    listed = _agreed(azure, application, is_whole, pause)
    if listed is None:
        raise AzureRefusedError(f"for two minutes, {missing}. Nothing was removed")
    kept = [credential for credential in listed if not is_meant(credential)]
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
    """The list that several consecutive reads returned and that satisfies `is_so`; None after two minutes."""
    before: set[str] | None = None
    in_a_row = 0
    for _ in range(_READS):
        listed = _listed(azure, application)
        key_ids = _key_ids(listed)
        in_a_row = (in_a_row + 1 if key_ids == before else 1) if is_so(listed) else 0
        before = key_ids
        if in_a_row == _READS_IN_A_ROW:
            return listed
        pause(_BETWEEN_READS)
    return None


def _listed(azure: AzureClient, application: str) -> Sequence[AzureObject]:
    holder = azure.directory_object(f"{application}?$select=keyCredentials") or {}
    listed: Sequence[AzureObject] = holder.get("keyCredentials", [])
    return listed


def _key_ids(listed: Sequence[AzureObject]) -> set[str]:
    return {str(credential.get("keyId", "")).lower() for credential in listed}


def _late(application: str) -> str:
    return (
        f"certificates were removed from {application}, and two minutes later some are listed again, or others are "
        "missing: somebody else writes the list as well, or Entra ID's replicas are late"
    )


def certificate_days(azure: AzureClient) -> int | None:
    """The whole days that the tenant allows a certificate of an application made now; None without a known limit.

    Needs Policy.Read.All. Source: Graph v1.0, keyCredentialConfiguration. It may spare callers with a custom security
    attribute (`excludeActors`), which are not known here, and applications that were made before a date.
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
