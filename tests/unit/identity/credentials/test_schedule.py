"""Renewal: which slot, when, and what stays usable meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from identity.credentials.certificate import CLOCK_SKEW
from identity.credentials.schedule import (
    Renewal,
    Slot,
    Slots,
    due,
    initial,
    renewed,
    spare_is_free,
    with_fresh_spare,
)

START = datetime(2026, 1, 31, 9, 30, 15, 250_000, tzinfo=UTC)
VALID_FROM = datetime(2026, 1, 31, 9, 25, 15, tzinfo=UTC)
DAY = timedelta(days=1)

moments = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@st.composite
def lives(draw: st.DrawFn) -> tuple[int, int]:
    """(lifetime, renew before) in days, as the settings accept them."""
    lifetime = draw(st.integers(2, 730))
    return lifetime, draw(st.integers((lifetime + 1) // 2, lifetime - 1))


def test_at_first_both_slots_are_issued_and_b_is_a_second_older() -> None:
    assert initial(START) == Slots("a", Slot(1, VALID_FROM), Slot(1, VALID_FROM - timedelta(seconds=1)))


def test_the_defaults_renew_b_at_day_45_a_at_day_90_and_b_again_at_day_135() -> None:
    slots = initial(START)
    history = []
    for day in range(136):
        now = START + day * DAY
        if renewal := due(slots, now, 90, 45):
            slots = renewed(slots, renewal, now)
            history.append((day, renewal.slot, slots.current, slots.slot(renewal.slot).generation))
    assert history == [(45, "b", "b", 2), (90, "a", "a", 2), (135, "b", "b", 3)]


def test_nothing_is_due_a_second_too_early() -> None:
    slots = initial(START)
    moment = VALID_FROM + 45 * DAY
    assert due(slots, moment - timedelta(seconds=1), 90, 45) is None
    assert due(slots, moment, 90, 45) == Renewal("b", moment)


def test_due_since_is_when_it_fell_due_not_when_somebody_looked() -> None:
    assert due(initial(START), START + 60 * DAY, 90, 45) == Renewal("b", VALID_FROM + 45 * DAY)


def test_after_a_year_without_a_run_one_renewal_is_due_and_it_is_the_spare() -> None:
    slots = initial(START)
    now = START + 365 * DAY
    renewal = due(slots, now, 90, 45)
    assert renewal is not None
    assert renewal.slot == slots.spare == "b"
    assert due(renewed(slots, renewal, now), now, 90, 45) is None


@given(start=moments, life=lives(), hours=st.lists(st.integers(0, 30 * 24), max_size=60))
def test_the_current_certificate_is_never_the_one_renewed(
    start: datetime, life: tuple[int, int], hours: list[int]
) -> None:
    slots, now = initial(start), start
    for pause in hours:
        now += timedelta(hours=pause)
        renewal = due(slots, now, *life)
        if renewal is None:
            continue
        after = renewed(slots, renewal, now)
        assert renewal.slot == slots.spare
        assert after.slot(slots.current) == slots.slot(slots.current), "pods may still use the one that was current"
        assert after.current == renewal.slot
        assert after.slot(renewal.slot).generation == slots.slot(renewal.slot).generation + 1
        slots = after


@given(start=moments, life=lives(), clock=st.lists(st.integers(-7200, 7200), max_size=30))
def test_a_new_current_certificate_is_the_latest_even_if_the_clock_goes_back(
    start: datetime, life: tuple[int, int], clock: list[int]
) -> None:
    slots, now = initial(start), start
    for seconds in clock:
        now += timedelta(seconds=seconds)
        before = max(slots.a.not_before, slots.b.not_before)
        slots = renewed(slots, Renewal(slots.spare, now), now)
        issued = slots.slot(slots.current).not_before
        assert issued - before >= timedelta(seconds=1), "loaders silently keep the old one otherwise"
        assert issued.microsecond == 0


@given(start=moments, life=lives(), late=st.lists(st.integers(0, 24 * 3600), min_size=1, max_size=400))
def test_under_daily_runs_renew_before_less_a_day_is_left(
    start: datetime, life: tuple[int, int], late: list[int]
) -> None:
    lifetime, renew_before = life
    slots = initial(start)
    for day, seconds in enumerate(late):
        run = start + (day + 1) * DAY - timedelta(seconds=seconds)
        left = slots.slot(slots.current).not_before + lifetime * DAY - run
        # Two runs of "daily" lie up to two days apart here: late one day, early the next.
        assert left >= (renew_before - 2) * DAY
        if renewal := due(slots, run, lifetime, renew_before):
            slots = renewed(slots, renewal, run)


@given(start=moments, life=lives(), runs=st.integers(1, 400))
def test_under_runs_at_the_same_hour_the_spare_outlives_its_turn(
    start: datetime, life: tuple[int, int], runs: int
) -> None:
    lifetime, renew_before = life
    slots = initial(start)
    for day in range(1, runs + 1):
        run = start + day * DAY
        spare_ends = slots.slot(slots.spare).not_before + lifetime * DAY
        assert spare_ends >= run - CLOCK_SKEW - timedelta(seconds=2)
        current_ends = slots.slot(slots.current).not_before + lifetime * DAY
        assert current_ends - run >= (renew_before - 1) * DAY
        if renewal := due(slots, run, lifetime, renew_before):
            slots = renewed(slots, renewal, run)


def test_the_first_spare_was_never_used_and_is_free_at_once() -> None:
    assert spare_is_free(initial(START)) == VALID_FROM + CLOCK_SKEW


def test_a_former_current_certificate_is_free_after_the_overlap() -> None:
    now = START + 50 * DAY
    slots = renewed(initial(START), Renewal("b", now), now)
    assert spare_is_free(slots) == datetime(2026, 3, 22, 18, 0, 15, tzinfo=UTC)


def test_a_fresh_spare_is_older_than_the_current_certificate_by_a_second() -> None:
    now = START + 50 * DAY
    slots = renewed(initial(START), Renewal("b", now), now)
    fresh = with_fresh_spare(slots)
    assert (fresh.current, fresh.b) == ("b", slots.b)
    assert fresh.a == Slot(2, slots.b.not_before - timedelta(seconds=1)), "or loaders would take it later"


@given(start=moments, requests=st.lists(st.sampled_from(["renew", "fresh spare"]), max_size=8))
def test_the_current_certificate_is_the_newest_and_is_never_replaced(start: datetime, requests: list[str]) -> None:
    slots = initial(start)
    for request in requests:
        current = slots.slot(slots.current)
        before = slots.current
        slots = renewed(slots, Renewal(slots.spare, start), start) if request == "renew" else with_fresh_spare(slots)
        assert slots.slot(before) == current
        assert slots.slot(slots.current).not_before > slots.slot(slots.spare).not_before
