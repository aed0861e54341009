"""Something that was looked at: found, or not read and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Unread:
    """Something that could not be read; `why` is shown to a person."""

    why: str


class NotRead(Exception):
    """A check needs something that could not be read; the message has the reason."""


def known(seen: T | Unread) -> T:
    """What was found; raises NotRead."""
    if isinstance(seen, Unread):
        raise NotRead(seen.why)
    return seen


def entry(seen: Mapping[str, T | Unread], key: str) -> T:
    """What was found under a key; raises NotRead, also for a key that nobody looked for."""
    if key not in seen:
        raise NotRead(f"{key} was not looked for")
    return known(seen[key])
