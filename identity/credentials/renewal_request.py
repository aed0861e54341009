"""Renewals that a person asks for, on their way from the `idstack rotate` command to the schedules of a stack.

An environment variable carries a request to one run of the engine. Its result is in the state, so a later run changes
nothing, and the next run finishes an interrupted one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

# JSON: name of the schedule's resource -> request.
VARIABLE: Final = "IDSTACK_RENEWALS"


class RenewalRequest(StrEnum):
    """What one schedule is asked to do.

    RENEW issues the spare slot again and makes it current; it is refused while pods may still use the spare's
    certificate, which FORCE does not wait for. WITHDRAW revokes the spare's certificate. REPLACE revokes every
    certificate of the application at once, before it issues another one. REGISTER issues none: it lets the vault's
    certificate, which somebody took out of Entra ID, be registered again.
    """

    RENEW = "renew"
    FORCE = "force"
    WITHDRAW = "withdraw"
    REPLACE = "replace"
    REGISTER = "register"


def write(requests: Mapping[str, RenewalRequest]) -> dict[str, str]:
    """The environment variable that carries the requests."""
    return {VARIABLE: json.dumps(requests)}


def is_renewal_run(environ: Mapping[str, str]) -> bool:
    """Whether this run of the engine only renews, as `idstack renew` (without a request) and `idstack rotate` do."""
    return bool(environ.get(VARIABLE))


def cannot_wait(environ: Mapping[str, str]) -> bool:
    """Whether a request must not wait, as after a leak; raises ValueError for a malformed variable."""
    return any(request is not RenewalRequest.RENEW for request in _requests(environ).values())


def read(schedule: str, environ: Mapping[str, str]) -> RenewalRequest | None:
    """The request to the schedule of that name; raises ValueError for a malformed variable."""
    return _requests(environ).get(schedule)


def _requests(environ: Mapping[str, str]) -> dict[str, RenewalRequest]:
    text = environ.get(VARIABLE)
    if not text:
        return {}
    try:
        return {name: RenewalRequest(request) for name, request in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(
            f"{VARIABLE}: found another text; accepted: a JSON object of {', '.join(RenewalRequest)} by schedule; "
            "`.venv/bin/idstack rotate` sets it"
        ) from None
