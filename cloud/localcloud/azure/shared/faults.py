"""How slow and eventually consistent the local Azure is. The defaults are Azure's delays, shortened."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, TypeAlias

from localcloud.core.clock import now

FAULTS_VARIABLE = "LOCALCLOUD_FAULTS"
"""Environment variable with a JSON object of settings, read when the local cloud starts: `{"role_delay": 5}`."""

# (requests at once, more per second)
_Limits: TypeAlias = Mapping[str, tuple[float, float]]

ARM_REQUESTS: Final[_Limits] = {"read": (250, 25), "write": (200, 10), "delete": (200, 10)}
"""Azure's own limits for one principal in one subscription (arm/api.py)."""

GRAPH_REQUESTS: Final[_Limits] = {"unit": (3500, 350), "write": (3000, 20), "tenant_write": (18000, 60)}
"""Of one application in a tenant of less than fifty users: 3,500 resource units in 10 s, 3,000 writes in 150 s; of all
applications in it, 18,000 writes in 300 s."""

VAULT_REQUESTS: Final[_Limits] = {"create": (300, 30), "create_key": (20, 2), "key": (4000, 400), "other": (4000, 400)}
"""Of one vault, what it takes in 10 s: 300 new versions of secrets and imports, 20 new keys, 4,000 other requests for
keys and 4,000 for the rest."""

_REPLICATED: Final = {"replica_delays", "graph_delays"}

_LIMITED: Final[Mapping[str, _Limits]] = {
    "arm_requests": ARM_REQUESTS,
    "graph_requests": GRAPH_REQUESTS,
    "vault_requests": VAULT_REQUESTS,
}


@dataclass(frozen=True)
class Faults:
    """All delays in seconds.

    Attributes:
        replica_delays: one entry per replica of Entra: how long after a change (principal, certificate) it knows it.
        graph_delays: one entry per replica of Graph: how long after a change of an application's or service principal's
            certificates a read shows it.
        principal_delay: how long ARM answers `PrincipalNotFound` for a new principal.
        role_delay: how long a new role assignment has no effect.
        federated_credential_write: how long a write of a federated credential keeps others of its identity out.
        resource_group_deletion: how long the deletion of a resource group takes after it was accepted.
        arm_requests: for read, write and delete, how many requests ARM takes from one caller at once and how many more
            each second, as [250, 25]; null takes the limit away. What the environment does not name keeps its default.
        graph_requests: the same for Graph: resource units (unit) and writes (write) of one application, and
            writes of all (tenant_write).
        vault_requests: the same for a vault: new versions of secrets and imported certificates (create), new
            keys (create_key), other requests for keys (key), everything else (other).
        token_lifetime: least and greatest lifetime of a token in seconds; each token's is drawn in between.
        device_code_interval: how often a device code may be polled for.
        latency: added to each answer, keyed by `service`, or `service METHOD` (`arm PUT`), which wins.
        seed: repeats the choice of replicas and the token lifetimes; None makes each start different.
    """

    replica_delays: tuple[float, ...] = (0.0, 0.5, 1.5)
    graph_delays: tuple[float, ...] = (0.0,)
    principal_delay: float = 1.0
    role_delay: float = 1.0
    federated_credential_write: float = 0.2
    resource_group_deletion: float = 0.2
    arm_requests: _Limits = field(default_factory=lambda: dict(ARM_REQUESTS))
    graph_requests: _Limits = field(default_factory=lambda: dict(GRAPH_REQUESTS))
    vault_requests: _Limits = field(default_factory=lambda: dict(VAULT_REQUESTS))
    token_lifetime: tuple[int, int] = (3600, 5400)
    device_code_interval: float = 5.0
    latency: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None

    def latency_of(self, service: str, method: str) -> float:
        """Seconds that an answer of `service` to an HTTP `method` is held back."""
        return self.latency.get(f"{service} {method}", self.latency.get(service, 0.0))

    def random(self) -> random.Random:
        """A random generator for one part of the cloud, repeatable if `seed` is set."""
        return random.Random(self.seed)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Faults:
        """The defaults with what `LOCALCLOUD_FAULTS` changes; raises ValueError that names the known settings."""
        text = environ.get(FAULTS_VARIABLE, "").strip()
        document: Any = json.loads(text) if text else {}
        known = [field.name for field in fields(cls)]
        if not isinstance(document, dict) or not set(document) <= set(known):
            raise ValueError(f"{FAULTS_VARIABLE} {text}: a JSON object with keys among {', '.join(known)} is expected")
        for setting in _REPLICATED & set(document):
            document[setting] = tuple(document[setting])
            if not document[setting]:
                raise ValueError(f"{FAULTS_VARIABLE} {setting} []: at least one replica is needed")
        if "token_lifetime" in document:
            document["token_lifetime"] = tuple(document["token_lifetime"])
        for setting, defaults in _LIMITED.items():
            if setting in document:
                limits = {**defaults, **document[setting]}
                if unknown := sorted(set(limits) - set(defaults)):
                    raise ValueError(f"{FAULTS_VARIABLE} {setting} {unknown[0]}: known are {', '.join(defaults)}")
                document[setting] = {kind: tuple(limit) for kind, limit in limits.items() if limit is not None}
        return cls(**document)


NO_DELAYS = Faults(
    replica_delays=(0.0,),
    principal_delay=0.0,
    role_delay=0.0,
    federated_credential_write=0.0,
    resource_group_deletion=0.0,
    arm_requests={},
    graph_requests={},
    vault_requests={},
    device_code_interval=0.0,
    seed=0,
)
"""An Azure without any lag or limit, for tests of everything else."""


@dataclass
class _Bucket:
    tokens: float
    filled_at: datetime


class TokenBuckets:
    """Buckets by holder and kind. `limits` has (bucket size, tokens refilled per second) for each kind."""

    def __init__(self, limits: Mapping[str, tuple[float, float]]) -> None:
        self._limits = limits
        self._buckets: dict[tuple[Hashable, str], _Bucket] = {}

    def wait(self, holder: Hashable, kind: str, amount: int = 1) -> int:
        """Whole seconds until the bucket holds `amount`, at least 1; 0 when it does, or the kind has no limit."""
        if kind not in self._limits:
            return 0
        missing = amount - self._filled(holder, kind).tokens
        return 0 if missing <= 0 else max(1, math.ceil(missing / self._limits[kind][1]))

    def take(self, holder: Hashable, kind: str, amount: int = 1) -> int:
        """Take `amount`, which `wait` has confirmed; returns the rest. A kind without a limit is not counted."""
        if kind not in self._limits:
            return 0
        bucket = self._filled(holder, kind)
        bucket.tokens -= amount
        return int(bucket.tokens)

    def _filled(self, holder: Hashable, kind: str) -> _Bucket:
        """The bucket, refilled until now."""
        size, refill = self._limits[kind]
        instant = now()
        bucket = self._buckets.setdefault((holder, kind), _Bucket(size, instant))
        elapsed = max((instant - bucket.filled_at).total_seconds(), 0.0)
        bucket.tokens, bucket.filled_at = min(size, bucket.tokens + elapsed * refill), instant
        return bucket
