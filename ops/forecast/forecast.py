"""How much of each limit some stacks take, and how many clusters like theirs still fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final

from ops.forecast.limits import LIMITS, ROLE_ASSIGNMENTS, VAULT_READS, ServiceLimit
from ops.forecast.stack import ForecastStack

# The part of a limit from which it is a warning.
WARN_FROM: Final = 0.8
# Poll intervals to choose from; the last is the longest that the settings accept.
_POLLS: Final = tuple(timedelta(minutes=minutes) for minutes in (2, 5, 10, 15, 30, 60))


@dataclass(frozen=True, kw_only=True)
class Use:
    """What is taken of a limit at its fullest holder. `more` clusters like those still fit, None: any number."""

    limit: ServiceLimit
    holder: str
    used: float
    more: int | None

    @property
    def share(self) -> float:
        """The part of the limit; 1.0 is all of it."""
        return self.used / self.limit.most

    def to_json(self) -> dict[str, Any]:
        """The element of `limits` in the JSON document."""
        return {
            "limit": self.limit.key,
            "name": self.limit.name,
            "holder": self.holder,
            "used": round(self.used, 1),
            "most": self.limit.most,
            "share": round(self.share, 4),
            "moreClusters": self.more,
            "condition": self.limit.condition,
            "source": f"https://{self.limit.source.address}",
        }


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The uses of all limits, in the table's order; those of which nothing is taken are left out.

    `clusters` is their number, `longest_poll` the longest interval of a stack's CSI driver.
    """

    clusters: int
    uses: tuple[Use, ...]
    longest_poll: timedelta

    def use(self, limit: ServiceLimit) -> Use | None:
        """The use of one limit."""
        return next((use for use in self.uses if use.limit is limit), None)

    @property
    def first(self) -> Use | None:
        """The limit that stops everybody and is met first as clusters are added; None if none grows with them."""
        return _fullest(use for use in self.uses if use.limit.condition is None)

    @property
    def conditional(self) -> list[Use]:
        """Limits for some only, which are met before that one."""
        first = self.first
        return [
            use
            for use in self.uses
            if use.limit.condition is not None
            and use.more is not None
            and (first is None or first.more is None or use.more < first.more)
        ]

    @property
    def near(self) -> list[Use]:
        """The uses to warn of: from `WARN_FROM` on of a limit without a condition."""
        return [use for use in self.uses if use.limit.condition is None and use.share >= WARN_FROM]

    def advice(self) -> dict[str, str]:
        """How many subscriptions, how many vaults, which poll interval."""
        subscriptions, vaults = self._needed(ROLE_ASSIGNMENTS), self._needed(VAULT_READS)
        return {
            "subscriptions": _enough(subscriptions, "subscription", "a stack has one, `subscriptionId`"),
            "vaults": _enough(vaults, "vault", "a stack of its own for each group of clusters has one"),
            "pollInterval": self._poll_advice(),
        }

    def _needed(self, limit: ServiceLimit) -> int:
        use = self.use(limit)
        return 1 if use is None else max(1, math.ceil(use.share / WARN_FROM))

    def _poll_advice(self) -> str:
        use = self.use(VAULT_READS)
        now = _in_minutes(self.longest_poll)
        if use is None or use.share < WARN_FROM:
            return f"{now} keeps below {WARN_FROM:.0%} of a vault's reads"
        needed = self.longest_poll * (use.share / WARN_FROM)
        fitting = next((poll for poll in _POLLS if poll >= needed), None)
        if fitting is None:
            return f"an hour, the longest, is not enough with {now} as it is now: more vaults"
        return f"{_in_minutes(fitting)} instead of {now} keeps below {WARN_FROM:.0%} of a vault's reads"

    def to_json(self) -> dict[str, Any]:
        """The JSON document but for the stacks' names."""
        return {
            "clusters": self.clusters,
            "limits": [use.to_json() for use in self.uses],
            "first": self.first.to_json() if self.first else None,
            "advice": self.advice(),
        }


def forecast(stacks: Sequence[ForecastStack], clusters: int | None = None) -> Forecast:
    """The forecast for the stacks together, or as if they had so many `clusters` like those that they have.

    A cluster more is one like the average of theirs, spread over the stacks' subscriptions and vaults as theirs are.
    """
    present = sum(len(stack.clusters) for stack in stacks)
    wanted = present if clusters is None else clusters
    uses = [_use(limit, stacks, present, wanted) for limit in LIMITS]
    return Forecast(
        clusters=wanted,
        uses=tuple(use for use in uses if use is not None and use.used),
        longest_poll=max(stack.poll for stack in stacks),
    )


def _use(limit: ServiceLimit, stacks: Sequence[ForecastStack], present: int, wanted: int) -> Use | None:
    fixed: dict[str, Fraction] = {}
    growing: dict[str, Fraction] = {}
    for stack in stacks:
        for taken in limit.count(stack):
            part = fixed if taken.cluster is None or not limit.grows else growing
            amount = Fraction(taken.amount).limit_denominator(10_000)
            # What does not grow is no sum: two secrets do not share their 25 KB.
            before = part.get(taken.holder, Fraction(0))
            part[taken.holder] = before + amount if limit.grows else max(before, amount)
    holders = fixed | growing
    found = [
        _at(limit, holder, fixed.get(holder, Fraction(0)), growing.get(holder, Fraction(0)), present, wanted)
        for holder in holders
    ]
    return max(found, key=lambda use: (use.used, use.holder), default=None)


def _at(limit: ServiceLimit, holder: str, fixed: Fraction, growing: Fraction, present: int, wanted: int) -> Use:
    for_each = growing / present if present else Fraction(0)
    used = fixed + for_each * wanted
    more = max(0, math.floor((limit.most - used) / for_each)) if for_each else None
    return Use(limit=limit, holder=holder, used=float(used), more=more)


def _fullest(uses: Iterator[Use]) -> Use | None:
    growing = [use for use in uses if use.more is not None]
    return min(growing, key=lambda use: (use.more, -use.share), default=None)


def _enough(number: int, what: str, how: str) -> str:
    return f"1 {what} is enough" if number == 1 else f"{number} {what}s; {how}"


def _in_minutes(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"
