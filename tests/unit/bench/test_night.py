"""The simulated part of `make bench ARGS=night`: dates by the product's rule, runs eight at a time."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from bench import night
from bench.night import PUNCTUAL, DailyRun, Night, nights, simulated
from tests.request_count import Requests

IDENTITIES: Final = 9
IDLE: Final = DailyRun(Requests({("arm", "GET"): 20, ("keyvault", "GET"): 0}), 4.0)
RENEWING: Final = DailyRun(
    Requests(
        {("arm", "GET"): 20, ("arm", "PUT"): 9, ("graph", "PATCH"): 18, ("graph", "GET"): 100, ("keyvault", "GET"): 9}
    ),
    10.0,
)


def test_dates_that_are_all_alike_fall_into_one_night_and_again_45_days_later() -> None:
    by_day = nights([PUNCTUAL] * IDENTITIES * 2)
    assert {day: dict(found) for day, found in by_day.items() if found} == {
        45: {0: IDENTITIES, 1: IDENTITIES},
        90: {0: IDENTITIES, 1: IDENTITIES},
    }


def test_every_identity_is_renewed_once_in_the_first_45_days() -> None:
    by_day = nights([f"{stem}-c{cluster}-json" for cluster in range(3) for stem in "abcdefghi"])
    first: Counter[int] = sum((found for day, found in by_day.items() if day <= 45), Counter())
    assert first == {0: IDENTITIES, 1: IDENTITIES, 2: IDENTITIES}
    assert len([day for day, found in by_day.items() if found and day <= 45]) > 3


def test_the_busiest_night_has_all_runs_eight_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night, "CLUSTERS", 32)
    by_day = {1: Counter({0: 1}), 2: Counter(dict.fromkeys(range(32), IDENTITIES))}
    # Eight runs end each 10 seconds: in 150 s all 32, in 10 s eight.
    assert simulated(by_day, IDLE, RENEWING) == Night(32 * IDENTITIES, 32 * 18, 8 * 18)


def test_a_run_asks_in_proportion_to_what_it_renews(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night, "CLUSTERS", 1)
    assert simulated({1: Counter({0: 3})}, IDLE, RENEWING) == Night(3, 6, 6)
