"""The pauses between tries of something that failed."""

from __future__ import annotations

from collections.abc import Iterator


def growing(first: float, longest: float) -> Iterator[float]:
    """Seconds before each next try: `first`, then twice the one before, at most `longest`."""
    while True:
        yield first
        first = min(first * 2, longest)
