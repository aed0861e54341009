"""Something that was looked at: found, or not read and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from identity.access.errors import AccessError
from ops.stack.errors import MissingRightError

T = TypeVar("T")
_LONGEST: Final = 300  # of a refusal, which ends with the service's JSON


@dataclass(frozen=True)
class Unread:
    """Something that could not be read; `why` is shown to a person, `is_forbidden` if a right is missing."""

    why: str
    is_forbidden: bool = False

    @classmethod
    def because(cls, error: Exception, why: str | None = None) -> Self:
        """What the error kept from being read, in its words or in others."""
        is_forbidden = error.is_forbidden if isinstance(error, AccessError) else isinstance(error, MissingRightError)
        return cls(str(error) if why is None else why, is_forbidden)


def attempt(read: Callable[[], T]) -> T | Unread:
    """What can be read, unread if Azure or the management cluster refuses."""
    try:
        return read()
    except AccessError as error:
        return Unread.because(error, " ".join(str(error).split())[:_LONGEST])


class NotReadError(Exception):
    """A check needs something that could not be read; the message has the reason."""

    def __init__(self, why: str, *, is_forbidden: bool = False) -> None:
        super().__init__(why)
        self.is_forbidden = is_forbidden


def known(seen: T | Unread) -> T:
    """What was found; raises NotReadError."""
    if isinstance(seen, Unread):
        raise NotReadError(seen.why, is_forbidden=seen.is_forbidden)
    return seen


def entry(seen: Mapping[str, T | Unread], key: str) -> T:
    """What was found under a key; raises NotReadError, also for a key that nobody looked for."""
    if key not in seen:
        raise NotReadError(f"{key} was not looked for")
    return known(seen[key])
