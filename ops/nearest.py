"""The nearest known name of one that is not known, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that ends a message, with a space before it: ` Did you mean hc1?`; empty if nothing is near."""
    by_lower = {each.lower(): each for each in known}
    close = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=3)]
    return f" Did you mean {' or '.join(close)}?" if close else ""
