"""Suggests a known name for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def similar(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar, ignoring case; None if none is."""
    lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), lower, n=1)
    return lower[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "hc1"?`, for the end of a message; empty if no known name is similar."""
    close = similar(name, known)
    return "" if close is None else f'; did you mean "{close}"?'
