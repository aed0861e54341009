"""The pause before the next attempt: short at first, then longer, up to a limit."""

from __future__ import annotations


class Backoff:
    """Pauses in seconds: `first`, then each twice the previous one, at most `longest`.

    It neither waits nor reads a clock. One object serves one series of attempts; it is not thread-safe.
    """

    def __init__(self, first: float, longest: float) -> None:
        if not 0 < first <= longest:
            raise ValueError(f"pauses from {first} s to {longest} s: 0 < first <= longest")
        self._first = first
        self._longest = longest
        self._next = first

    def next(self) -> float:
        """The pause before the next attempt, in seconds."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause

    def reset(self) -> None:
        """Begin with the first pause again, after a success."""
        self._next = self._first
