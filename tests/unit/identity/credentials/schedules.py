"""Slots, deliveries and terms of a schedule, for its tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from identity.credentials.schedule import Delivery, ObservedSecret, Slot, Slots, Terms

START = datetime(2026, 1, 31, 9, 30, 15, 250_000, tzinfo=UTC)
VALID_FROM = datetime(2026, 1, 31, 9, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
# The one of a million names whose identity is due at the latest moment, to the second.
PUNCTUAL = "hc1185901"
TERMS = Terms(lifetime_days=90, renew_before_days=45, secret_name=PUNCTUAL)
FIRST = Slots("a", Slot(1, VALID_FROM, 90), None)
A1 = Delivery("a", 1, START)
# b2 was issued on day 46 and delivered.
SECOND_LIFE = Slots("b", FIRST.a, Slot(2, VALID_FROM + 46 * DAY, 90))
B2 = Delivery("b", 2, START + 46 * DAY)


def holding(delivery: Delivery, not_before: datetime | None = None) -> ObservedSecret:
    """A vault with the secret that was delivered."""
    return ObservedSecret(True, delivery, not_before)


def terms(**changes: Any) -> Terms:
    return replace(TERMS, **changes)
