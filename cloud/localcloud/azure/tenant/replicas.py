"""The directory is replicated: each request is served by one replica, which learns of a change only after its delay.

That is why one sign-in with a new certificate proves little: the next may meet a replica that answers 700027. And why
a client that writes a list back to Graph may remove what was added since it read the list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from localcloud.core import clock


@dataclass(frozen=True)
class Replica:
    """The replica that serves one request: what happened after `knows_until` has not reached it."""

    name: str
    knows_until: datetime


class Replicas:
    """Chooses a replica for each request, at random (`Faults.random`).

    `delays` gives the seconds that each of them is behind now.
    """

    def __init__(self, delays: Callable[[], Sequence[float]], chance: random.Random) -> None:
        self._delays = delays
        self._chance = chance

    def choose(self) -> Replica:
        """The replica for the request that came in now."""
        delays = self._delays()
        number = self._chance.randrange(len(delays))
        return Replica(f"replica-{number}", clock.now() - timedelta(seconds=delays[number]))
