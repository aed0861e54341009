"""Token buckets: how Azure counts requests against a limit, for each holder."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime

from localcloud.core.clock import now


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
