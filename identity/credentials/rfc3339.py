"""Timestamps as credential documents and stack state write them (RFC 3339)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

EXAMPLE: Final = "2026-01-31T09:30:00Z"

# Go's time.RFC3339, by which msi-dataplane reads the dates; `datetime.fromisoformat` accepts far more.
_SHAPE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)


def parse(text: str) -> datetime:
    """The moment `text` names, in UTC; raises ValueError."""
    if not _SHAPE.fullmatch(text):
        raise ValueError("not an RFC 3339 timestamp")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:  # year 1 or 9999 pushed over the edge by its offset
        raise ValueError("timestamp out of range") from None


def from_unix(seconds: int | None) -> datetime | None:
    """Unix seconds in UTC; None stays None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def render(moment: datetime) -> str:
    """`moment` in UTC with a `Z`, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)
