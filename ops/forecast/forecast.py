"""How much of each limit some stacks use, and how many clusters like theirs still fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final

from ops.forecast.limits import LIMITS, ROLE_ASSIGNMENTS, VAULT_READS, ServiceLimit
from ops.forecast.stack import ForecastStack

# The share of a limit from which on a preview warns.
WARN_FROM: Final = 0.8
# Poll intervals to choose from; the last is the longest that the settings accept.
_POLLS: Final = tuple(timedelta(minutes=minutes) for minutes in (2, 5, 10, 15, 30, 60))


@dataclass(frozen=True, kw_only=True)
class LimitUsage:
    """The usage of a limit at its fullest holder. `more` clusters like those still fit, None: any number."""

    limit: ServiceLimit
    holder: str
    used: float
    more: int | None

    @property
    def share(self) -> float:
        """The used share of the limit; 1.0 is all of it."""
        return self.used / self.limit.maximum

    def to_json(self) -> dict[str, Any]:
        """The element of `limits` in the JSON document."""
        return {
            "limit": self.limit.key,
            "name": self.limit.name,
            "holder": self.holder,
            "used": round(self.used, 1),
            "maximum": self.limit.maximum,
            "share": round(self.share, 4),
            "moreClusters": self.more,
            "condition": self.limit.condition,
            "source": f"https://{self.limit.source.address}",
        }


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The usages of all limits, in the table's order, without unused limits.

    `clusters` is their number, `longest_poll` the longest interval of a stack's CSI driver.
    """

    clusters: int
    usages: tuple[LimitUsage, ...]
    longest_poll: timedelta

    def usage(self, limit: ServiceLimit) -> LimitUsage | None:
        """The usage of one limit."""
        return next((usage for usage in self.usages if usage.limit is limit), None)

    @property
    def first(self) -> LimitUsage | None:
        """The limit without a condition that is met first as clusters are added; None if none grows with them."""
        return _fullest(usage for usage in self.usages if usage.limit.condition is None)

    @property
    def conditional(self) -> list[LimitUsage]:
        """The limits with a condition that are met before that one."""
        first = self.first
        return [
            usage
            for usage in self.usages
            if usage.limit.condition is not None
            and usage.more is not None
            and (first is None or first.more is None or usage.more < first.more)
        ]

    @property
    def near(self) -> list[LimitUsage]:
        """The usages to warn of: of limits without a condition, from `WARN_FROM` on."""
        return [usage for usage in self.usages if usage.limit.condition is None and usage.share >= WARN_FROM]

    def advice(self) -> dict[str, str]:
        """The needed subscriptions, vaults and poll interval, a sentence each."""
        subscriptions, vaults = self._needed(ROLE_ASSIGNMENTS), self._needed(VAULT_READS)
        return {
            "subscriptions": _enough(subscriptions, "subscription", "a stack has one, `subscriptionId`"),
            "vaults": _enough(vaults, "vault", "a stack of its own for each group of clusters has one"),
            "pollInterval": self._poll_advice(),
        }

    def _needed(self, limit: ServiceLimit) -> int:
        usage = self.usage(limit)
        return 1 if usage is None else max(1, math.ceil(usage.share / WARN_FROM))

    def _poll_advice(self) -> str:
        usage = self.usage(VAULT_READS)
        now = _in_minutes(self.longest_poll)
        if usage is None or usage.share < WARN_FROM:
            return f"{now} keeps below {WARN_FROM:.0%} of a vault's reads"
        needed = self.longest_poll * (usage.share / WARN_FROM)
        fitting = next((poll for poll in _POLLS if poll >= needed), None)
        if fitting is None:
            return f"an hour, the longest, is not enough instead of {now}: use more vaults"
        return f"{_in_minutes(fitting)} instead of {now} keeps below {WARN_FROM:.0%} of a vault's reads"

    def to_json(self) -> dict[str, Any]:
        """The JSON document without the stacks' names."""
        return {
            "clusters": self.clusters,
            "limits": [usage.to_json() for usage in self.usages],
            "first": self.first.to_json() if self.first else None,
            "advice": self.advice(),
        }


def forecast(stacks: Sequence[ForecastStack], clusters: int | None = None) -> Forecast:
    """The forecast for the stacks together, with their own clusters or with `clusters` like the average of them.

    Added clusters are spread over the stacks' subscriptions and vaults as the present ones are.
    """
    present = sum(len(stack.clusters) for stack in stacks)
    projected = present if clusters is None else clusters
    usages = [_usage(limit, stacks, present, projected) for limit in LIMITS]
    return Forecast(
        clusters=projected,
        usages=tuple(usage for usage in usages if usage is not None and usage.used),
        longest_poll=max(stack.poll for stack in stacks),
    )


def _usage(limit: ServiceLimit, stacks: Sequence[ForecastStack], present: int, projected: int) -> LimitUsage | None:
    fixed: dict[str, Fraction] = {}
    growing: dict[str, Fraction] = {}
    for stack in stacks:
        for usage in limit.count(stack):
            part = fixed if usage.cluster is None or not limit.grows else growing
            amount = Fraction(usage.amount).limit_denominator(10_000)
            # A limit that does not grow is not summed: two identities do not share their 20 federated credentials.
            known = part.get(usage.holder, Fraction(0))
            part[usage.holder] = known + amount if limit.grows else max(known, amount)
    holders = fixed | growing
    usages = [
        _at(limit, holder, fixed.get(holder, Fraction(0)), growing.get(holder, Fraction(0)), present, projected)
        for holder in holders
    ]
    return max(usages, key=lambda use: (use.used, use.holder), default=None)


def _at(
    limit: ServiceLimit, holder: str, fixed: Fraction, growing: Fraction, present: int, projected: int
) -> LimitUsage:
    per_cluster = growing / present if present else Fraction(0)
    used = fixed + per_cluster * projected
    more = max(0, math.floor((limit.maximum - used) / per_cluster)) if per_cluster else None
    return LimitUsage(limit=limit, holder=holder, used=float(used), more=more)


def _fullest(usages: Iterator[LimitUsage]) -> LimitUsage | None:
    growing = [usage for usage in usages if usage.more is not None]
    return min(growing, key=lambda use: (use.more, -use.share), default=None)


def _enough(number: int, what: str, how: str) -> str:
    return f"1 {what} is enough" if number == 1 else f"{number} {what}s; {how}"


def _in_minutes(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"
