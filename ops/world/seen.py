"""The parts of a look, and the result of reading one: a value, or `Unread` with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self, TypeVar

from identity.azure.errors import AccessError

T = TypeVar("T")
_MAX_LENGTH: Final = 300  # of a refusal, which ends with the service's JSON


@dataclass(frozen=True)
class Unread:
    """A value that could not be read; `why` is shown to the user, `is_forbidden` if a right is missing."""

    why: str
    is_forbidden: bool = False

    @classmethod
    def because(cls, error: Exception, why: str | None = None) -> Self:
        """A read that failed with this error; `why` replaces its message."""
        return cls(str(error) if why is None else why, isinstance(error, AccessError) and error.is_forbidden)


NOT_READ: Final = Unread("it was not read")
"""A value that no check needs."""


def attempt(read: Callable[[], T]) -> T | Unread:
    """Read a value; unread if Azure or the management cluster refuses."""
    try:
        return read()
    except AccessError as error:
        return Unread.because(error, " ".join(str(error).split())[:_MAX_LENGTH])


class NotReadError(Exception):
    """A check needs a value that could not be read; the message has the reason."""

    def __init__(self, why: str, *, is_forbidden: bool = False) -> None:
        super().__init__(why)
        self.is_forbidden = is_forbidden


def known(seen: T | Unread) -> T:
    """The value; raises NotReadError."""
    if isinstance(seen, Unread):
        raise NotReadError(seen.why, is_forbidden=seen.is_forbidden)
    return seen


def entry(seen: Mapping[str, T | Unread], key: str) -> T:
    """The value of a key; raises NotReadError, also for a key that was not read."""
    if key not in seen:
        raise NotReadError(f"{key} was not read")
    return known(seen[key])


class Part(StrEnum):
    """The parts of a world; each value is the right to read it."""

    STATE = "to read the stack's state in the backend"
    LOCKS = "to list the backend's lock files"
    HISTORY = "to read the stack's history in the backend"
    DECRYPTION = "to use the stack's secrets provider"
    CONFIGURATION = "to read the stack's configuration"
    SIGN_IN = "to sign in to Azure"
    ACCESS = "to sign in to the management cluster"
    VAULT = "Reader on the key vault"
    SECRETS = "Reader on the key vault, for the metadata of its secrets"
    ADD_ON = "Reader on the management cluster"
    ROLES = "Reader at the scopes of the role assignments"
    APPLICATIONS = "Application.Read.All in Microsoft Graph"
    ISSUERS = "to reach the issuers of the hosted clusters over HTTPS"
    MANAGED_IDENTITIES = "Reader on the resource group of the managed identities"
    CONTROL_PLANES = "get and list on the objects of the control plane's namespace"
    REPORTS = "get on pods/proxy in the control plane's namespace, for the probes' reports"
