"""When certificates are due: each identity at a time of its own, none later than the settings say."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from identity.catalogue import CONTROL_PLANE
from identity.credentials.schedule import (
    LEAST_AGE,
    OVERLAP,
    SPREAD,
    age_when_due,
    least_renew_before_days,
    share,
)

DAY = timedelta(days=1)
names = st.text(max_size=127)
lifetimes = st.integers(2, 730)


@given(lifetimes, st.data(), names)
def test_no_identity_is_due_later_than_the_settings_say(lifetime: int, data: st.DataObject, name: str) -> None:
    before = data.draw(st.integers(1, lifetime - 1))
    age = age_when_due(lifetime, before, name)
    assert age <= (lifetime - before) * DAY
    assert age >= (lifetime - before) * DAY * 5 / 6
    assert age.microseconds == 0, "dates have whole seconds"


@given(st.integers(1, 730), st.integers(1, 729), names)
def test_never_while_pods_may_use_the_certificate_before(lifetime: int, before: int, name: str) -> None:
    """As well for a certificate that was issued under other settings than those of today."""
    earliest = timedelta(days=lifetime - before) * float(1 - SPREAD)
    assert age_when_due(lifetime, before, name) >= max(earliest, LEAST_AGE) > OVERLAP


@given(lifetimes)
def test_a_third_of_the_lifetime_is_kept_for_renewals_that_fail(lifetime: int) -> None:
    least = least_renew_before_days(lifetime)
    assert 1 <= least < lifetime
    assert least >= min(lifetime / 3, 30)
    assert least <= (lifetime + 1) / 2, "what was accepted before"


@pytest.mark.parametrize(
    ("lifetime", "least"), [(2, 1), (3, 2), (4, 2), (6, 2), (7, 3), (60, 20), (90, 30), (91, 30), (730, 30)]
)
def test_the_latest_renewal_that_is_accepted(lifetime: int, least: int) -> None:
    assert least_renew_before_days(lifetime) == least


@given(names)
def test_a_name_has_the_same_share_in_any_letter_case(name: str) -> None:
    assume(name.lower() == name.upper().lower())
    assert 0 <= share(name) == share(name.upper()) < 1


def test_the_dates_stay_the_same_in_every_release() -> None:
    """A credential's `renewAfter` and its schedule may be computed by two releases."""
    assert age_when_due(90, 45, "ingress-hc1-json") == timedelta(days=39, hours=15, minutes=46, seconds=38)
    assert age_when_due(90, 45, "kms-hc1-json") == timedelta(days=41, hours=14, minutes=31, seconds=32)


def test_two_hundred_clusters_of_one_day_are_spread_over_a_week() -> None:
    ages = [
        age_when_due(90, 45, f"{row.secret_stem}-c{cluster}-json") for cluster in range(200) for row in CONTROL_PLANE
    ]
    nights = Counter(age.days for age in ages)
    assert set(nights) == set(range(37, 45))
    assert max(nights.values()) < 1.25 * len(ages) / 7.5
