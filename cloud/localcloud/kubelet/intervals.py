"""The intervals of the kubelet, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Shorter than a real node's, so that a fix shows at once.

    Attributes:
        rotation: between polls of the secrets of a mount (the driver's --rotation-poll-interval; 2 min there, too).
        change: between looks whether the local cloud was written to, which makes every mount poll at once; after a poll
            that failed, the pause before the next.
        mount: the first and the longest pause after a failed mount (kubelet: 0.5 s to 2 min).
        restart: the same before a container that ended runs again (kubelet: 10 s to 5 min).
        steady: a container that ran this long starts with the first delay again (kubelet: 10 min).
    """

    rotation: float = 120.0
    change: float = 2.0
    mount: tuple[float, float] = (0.5, 4.0)
    restart: tuple[float, float] = (1.0, 30.0)
    steady: float = 60.0
