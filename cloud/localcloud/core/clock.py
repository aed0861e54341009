"""The local cloud's clock: real UTC time, which a test may move forward instead of waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

_ahead = timedelta(0)


def now() -> datetime:
    """The current instant, aware, in UTC."""
    return datetime.now(UTC) + _ahead


@contextmanager
def moved_ahead(by: timedelta) -> Iterator[None]:
    """Within the block the clock of every service in this process is `by` ahead, so that its delays have passed."""
    global _ahead
    before = _ahead
    _ahead = before + by
    try:
        yield
    finally:
        _ahead = before


def rfc3339(instant: datetime) -> str:
    """`instant` as Azure prints it: whole seconds, UTC, with `Z`."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> datetime:
    """The aware instant that an RFC 3339 string states; raises ValueError for any other string or a missing offset."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    return instant.astimezone(UTC)
