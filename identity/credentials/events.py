"""The events of a mounted credential, as they are logged and reported."""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from identity.credentials import rfc3339
from identity.credentials.document import Credential

_LOG: Final = logging.getLogger(__name__)


class EventKind(StrEnum):
    """The first three come from reading the file, the last two from trying a candidate."""

    ACCEPTED = "accepted"
    """The file holds a later credential: a candidate from now on."""
    UNCHANGED = "unchanged"
    """The file holds no later credential than the served one; a candidate was withdrawn."""
    REFUSED = "refused"
    """The file cannot be used, the candidate expired, or either failed unexpectedly. A valid candidate stays."""
    UNPROVEN = "unproven"
    """The candidate got no token; it is tried again."""
    SERVED = "served"
    """The credential is served from now on: the first one, or a candidate that got a token."""


@dataclass(frozen=True)
class Event:
    """`credential` is the one it is about, `problem` the reason without secrets; both may be None.

    `is_pending`: whether a candidate waits to be tried again.
    """

    kind: EventKind
    credential: Credential | None
    problem: str | None
    is_pending: bool


_MESSAGES: Final = {
    EventKind.ACCEPTED: (logging.INFO, "credential {named} found in {file}"),
    EventKind.UNCHANGED: (logging.DEBUG, "credential {named} in {file} is not later than {served}, which goes on"),
    EventKind.REFUSED: (logging.WARNING, "credential file {file} refused, {served} goes on: {problem}"),
    EventKind.UNPROVEN: (logging.WARNING, "credential {named} gets no token yet, {served} goes on: {problem}"),
    EventKind.SERVED: (logging.INFO, "credential {named} is served"),
}


def unforeseen(error: Exception) -> str:
    """Type and place of an unexpected exception. Its text is left out: it may quote what was read."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"


def log(event: Event, file: Path, served: Credential) -> None:
    """Log `event` in words, and for structured logs as `fields`. Certificates go by their thumbprints."""
    level, message = _MESSAGES[event.kind]
    fields = {"event": event.kind.value}
    if event.credential:
        fields |= {
            "thumbprint": event.credential.thumbprint,
            "notBefore": rfc3339.render(event.credential.not_before),
            "notAfter": rfc3339.render(event.credential.expires),
        }
    named = fields.get("thumbprint")
    text = message.format(named=named, file=file, served=served.thumbprint, problem=event.problem)
    _LOG.log(level, text, extra={"fields": fields})
