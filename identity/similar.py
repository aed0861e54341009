"""What was probably meant by a name that is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def similar(found: str, known: Iterable[str]) -> str | None:
    """The known name that is most like the one found, whatever its case; None if none is."""
    lower = {each.lower(): each for each in known}
    close = get_close_matches(found.lower(), lower, n=1)
    return lower[close[0]] if close else None


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """`; did you mean "hc1"?`, for the end of a message; empty if no known name is like the one found."""
    close = similar(found, known)
    return "" if close is None else f'; did you mean "{close}"?'
