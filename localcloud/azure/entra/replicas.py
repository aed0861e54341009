"""Entra is replicated: each sign-in is served by one replica, which learns of a change only after its delay.

That is why one sign-in with a new certificate proves little: the next may meet a replica that answers 700027.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.held import FaultHolder
from localcloud.core import clock


@dataclass(frozen=True)
class Replica:
    """The replica that serves one request: what happened after `knows_until` has not reached it."""

    name: str
    knows_until: datetime


class Replicas:
    """Chooses a replica for each sign-in, at random (repeatable with `Faults.seed`)."""

    def __init__(self, faults: Faults, holder: FaultHolder) -> None:
        self._delays = faults.replica_delays
        self._holder = holder
        self._chance = faults.random()

    def choose(self) -> Replica:
        """The replica for the request that came in now."""
        delays = self._holder.now().replica_delays or self._delays
        number = self._chance.randrange(len(delays))
        return Replica(f"replica-{number}", clock.now() - timedelta(seconds=delays[number]))
