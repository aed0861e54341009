"""The pause before the next try of something that failed: short at first, then longer, up to a limit."""

from __future__ import annotations


class Backoff:
    """Pauses in seconds, in growing order: `first`, then each `factor` times the one before, at most `longest`.

    It neither waits nor reads a clock: the caller does. One object serves one row of tries; it is not thread-safe.
    """

    def __init__(self, first: float, longest: float, *, factor: float = 2.0) -> None:
        if not 0 < first <= longest or factor < 1:
            raise ValueError(
                f"pauses from {first} s to {longest} s, factor {factor}: 0 < first <= longest, factor >= 1"
            )
        self._first = first
        self._longest = longest
        self._factor = factor
        self._following = first

    def next(self) -> float:
        """The pause before the next try, in seconds."""
        pause = self._following
        self._following = min(pause * self._factor, self._longest)
        return pause

    def reset(self) -> None:
        """Begin with the first pause again: a try succeeded."""
        self._following = self._first
