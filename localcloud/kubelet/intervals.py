"""The intervals of the kubelet, in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """A delay that doubles from `first` to `most`."""

    first: float
    most: float

    def delays(self) -> Iterator[float]:
        """The delays, without end."""
        delay = self.first
        while True:
            yield min(delay, self.most)
            delay *= 2


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Shorter than a real node's, so that a fix shows at once.

    Attributes:
        rotation: between polls of the secrets of a mount (the driver's --rotation-poll-interval; 2 min there, too).
        change: between looks whether the local cloud was written to, which makes every mount poll at once; after a poll
            that failed, the pause before the next.
        mount: after a failed mount (kubelet: 0.5 s to 2 min).
        restart: before a container that ended runs again (kubelet: 10 s to 5 min).
        steady: a container that ran this long starts with the first delay again (kubelet: 10 min).
    """

    rotation: float = 120.0
    change: float = 2.0
    mount: Backoff = Backoff(first=0.5, most=4.0)
    restart: Backoff = Backoff(first=1.0, most=30.0)
    steady: float = 60.0
