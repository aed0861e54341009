"""How slow and how eventually consistent the local Azure is. The defaults are Azure's kind of awkward, made quick."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

DIALS_VARIABLE = "LOCALCLOUD_DIALS"
"""Environment variable with a JSON object of dials, read when the local cloud starts: `{"role_delay": 5}`."""


@dataclass(frozen=True)
class Dials:
    """All delays in seconds.

    Attributes:
        replica_delays: one entry per replica of Entra: how long after a change (principal, certificate) it knows it.
        principal_delay: how long ARM answers `PrincipalNotFound` for a new principal.
        role_delay: how long a new role assignment has no effect.
        latency: added to each answer, keyed by `service`, or `service METHOD` (`arm PUT`), which wins.
        seed: fixes the order in which replicas answer and the token lifetimes; None draws anew on each start.
    """

    replica_delays: tuple[float, ...] = (0.0, 0.5, 1.5)
    principal_delay: float = 1.0
    role_delay: float = 1.0
    latency: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None

    def latency_of(self, service: str, method: str) -> float:
        """Seconds that an answer of `service` to an HTTP `method` is held back."""
        return self.latency.get(f"{service} {method}", self.latency.get(service, 0.0))

    def random(self) -> random.Random:
        """A source of chance of its own for one part of the cloud, repeatable when `seed` is set."""
        return random.Random(self.seed)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Dials:
        """The defaults with what `LOCALCLOUD_DIALS` changes; raises ValueError that names the known dials."""
        text = environ.get(DIALS_VARIABLE, "").strip()
        given: Any = json.loads(text) if text else {}
        known = [each.name for each in fields(cls)]
        if not isinstance(given, dict) or not set(given) <= set(known):
            raise ValueError(f"{DIALS_VARIABLE} {text}: a JSON object with keys out of {', '.join(known)}")
        if "replica_delays" in given:
            given["replica_delays"] = tuple(given["replica_delays"])
            if not given["replica_delays"]:
                raise ValueError(f"{DIALS_VARIABLE} replica_delays []: Entra needs at least one replica")
        return cls(**given)


NO_DELAYS = Dials(replica_delays=(0.0,), principal_delay=0.0, role_delay=0.0, seed=0)
"""An Azure without any lag, for tests of everything else."""
