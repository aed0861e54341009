"""The forms of token requests, and their allowed members (RFC 6749 3.2 would ignore others).

Members that say nothing about the request are those of MSAL for diagnostics, which some of its libraries send as
headers and others in the form.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from localcloud.azure.entra import errors
from localcloud.azure.shared.http import not_emulated
from localcloud.azure.shared.understood import Understood, is_neutral

READS: Final = Understood.of("client-request-id", body=None)
"""What a token request has beside its form."""
_OF_ALL: Final = frozenset({"grant_type", "client_id", "client_info", "claims"})
_PROOFS: Final = frozenset({"client_assertion", "client_assertion_type", "client_secret"})
OF_A_CLIENT: Final = _OF_ALL | _PROOFS | {"scope"}
OF_A_CLIENT_V1: Final = _OF_ALL | _PROOFS | {"resource"}
# MSAL sends the code of a device under both of its names.
OF_A_DEVICE: Final = _OF_ALL | {"device_code", "code", "scope"}
OF_A_SESSION: Final = _OF_ALL | {"refresh_token", "scope"}
OF_A_BEGINNING: Final = frozenset({"client_id", "scope", "claims"})


async def read(request: Request) -> dict[str, str]:
    """The form of a request; raises 501 for a repeated member."""
    pairs = parse_qsl((await request.body()).decode(errors="replace"))
    form = dict(pairs)
    if len(form) < len(pairs):
        raise not_emulated("entra", "a parameter more than once")
    return form


def require(form: Mapping[str, str], *names: str) -> None:
    """Raises 900144 for a parameter that is missing."""
    for name in names:
        if not form.get(name):
            raise errors.parameter_missing(name)


def check(form: Mapping[str, str], known: Collection[str]) -> None:
    """Raises 901002 for a resource in version 2.0, and 501 for a parameter that would be ignored."""
    for name in form:
        if name == "resource" and "scope" in known:
            raise errors.resource_not_supported()
        if name not in known and not is_neutral(name):
            raise not_emulated("entra", f"the parameter {name}")
    if form.get("claims"):
        _check_claims(form["claims"])
    if form.get("code", form.get("device_code")) != form.get("device_code"):
        raise not_emulated("entra", "the parameter code")


def _check_claims(text: str) -> None:
    """A client may state its capabilities (`xms_cc`), which change nothing here, and request a new start (`nbf`).

    msi-dataplane requests the latter to bypass caches; every token has it. Raises 501 for any other claim.
    """
    try:
        asked = json.loads(text)
    except ValueError:
        asked = None
    parts = asked if isinstance(asked, dict) else {"": None}
    for name, claims in parts.items():
        if name != "access_token" or not isinstance(claims, dict) or claims.keys() - {"xms_cc", "nbf"}:
            raise not_emulated("entra", "the parameter claims, but for xms_cc and nbf,")
