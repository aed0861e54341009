"""`RenewalScheduleResource`: the decision on a renewal, taken in Check by the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.credentials import rfc3339
from plugin import UNKNOWN, PluginError, PropertyChange, Props, Secret
from provider.renewal_schedule import RenewalScheduleResource
from tests.unit.provider.conftest import SetClock

URN = "urn:pulumi:dev::idstack::idstack:index:RenewalSchedule::hc1-ingress-schedule"
START = datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)
# What a program writes, by the defaults of the settings.
PROGRAM = {"lifetimeDays": 90, "renewBeforeDays": 45, "mode": "auto"}
FIRST_ISSUE = {
    "lifetimeDays": 90,
    "renewBeforeDays": 45,
    "current": "a",
    "a": {"generation": 1, "notBefore": "2026-01-31T09:25:15Z", "validDays": 90},
    "b": {"generation": 1, "notBefore": "2026-01-31T09:25:14Z", "validDays": 90},
    "renewal": "none yet",
}

schedule = RenewalScheduleResource()


def checked(old: Props | None = None, **changes: Any) -> Props:
    """The inputs after Check of the program's inputs with `changes`."""
    result = schedule.check(URN, old, {**PROGRAM, **changes})
    assert not result.failures
    return result.inputs


def changes(old: Props, new: Props) -> set[str]:
    """The changed properties, none of which may replace the schedule."""
    diff = schedule.diff(URN, "id", old, old, new)
    assert not any(change.replace for change in diff.changes.values())
    return set(diff.changes)


def test_at_first_both_slots_are_issued_and_b_is_a_second_older(set_clock: SetClock) -> None:
    set_clock(START)
    assert checked() == FIRST_ISSUE


def test_held_from_the_start_the_first_slots_are_issued_all_the_same(set_clock: SetClock) -> None:
    set_clock(START)
    assert checked(mode="hold") == FIRST_ISSUE


def test_nothing_changes_until_day_45(set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=44, hours=23))
    assert checked(FIRST_ISSUE) == FIRST_ISSUE
    assert changes(FIRST_ISSUE, FIRST_ISSUE) == set()


def test_from_day_45_on_b_is_issued_anew_and_current(set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=46))
    assert checked(FIRST_ISSUE) == {
        **FIRST_ISSUE,
        "current": "b",
        "b": {"generation": 2, "notBefore": "2026-03-18T09:25:15Z", "validDays": 90},
        "renewal": "slot b, due since 2026-03-17T09:25:15Z",
    }


def test_a_renewal_shows_as_four_changed_properties_and_no_more(set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=46))
    diff = schedule.diff(URN, "id", FIRST_ISSUE, FIRST_ISSUE, checked(FIRST_ISSUE))
    assert diff.changes == {
        name: PropertyChange("update") for name in ("b.generation", "b.notBefore", "current", "renewal")
    }


def test_a_second_run_right_after_a_renewal_changes_nothing(set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=46))
    renewed = checked(FIRST_ISSUE)
    assert checked(renewed) == renewed


def test_after_a_year_without_a_run_only_the_spare_is_renewed(set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=365))
    after = checked(FIRST_ISSUE)
    assert (after["current"], after["b"]["generation"]) == ("b", 2)
    assert after["a"] == FIRST_ISSUE["a"], "pods may still use it"
    assert checked(after) == after


def test_hold_keeps_what_there_is_and_auto_renews_later(set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=46))
    assert checked(FIRST_ISSUE, mode="hold") == FIRST_ISSUE
    assert checked(FIRST_ISSUE, mode="auto")["current"] == "b"


def test_another_lifetime_counts_from_the_next_issue_on(set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=20))
    shorter = checked(FIRST_ISSUE, lifetimeDays=30, renewBeforeDays=15)
    assert changes(FIRST_ISSUE, shorter) == {"lifetimeDays", "renewBeforeDays"}, "the current one still lives 90 days"

    set_clock(START + timedelta(days=75))
    renewed = checked(shorter, lifetimeDays=30, renewBeforeDays=15)
    assert renewed["renewal"] == "slot b, due since 2026-04-16T09:25:15Z", "90 - 15 days after the issue"
    assert (renewed["a"]["validDays"], renewed["b"]["validDays"]) == (90, 30)


def test_at_least_a_day_lies_between_two_renewals(set_clock: SetClock) -> None:
    longer = {"lifetimeDays": 365, "renewBeforeDays": 200}
    set_clock(START + timedelta(hours=23))
    assert checked(FIRST_ISSUE, **longer)["current"] == "a", "pods may not have loaded it yet"
    set_clock(START + timedelta(hours=24))
    assert checked(FIRST_ISSUE, **longer)["current"] == "b"


def test_secret_marks_on_the_stored_inputs_do_not_matter(set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=1))
    assert checked({name: Secret(value) for name, value in FIRST_ISSUE.items()}) == FIRST_ISSUE


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ({"lifetimeDays": 1}, ("lifetimeDays", "found 1; accepted: an integer, 2 at least")),
        ({"lifetimeDays": True}, ("lifetimeDays", "found True; accepted: an integer, 2 at least")),
        ({"renewBeforeDays": 0.5}, ("renewBeforeDays", "found 0.5; accepted: an integer, 1 at least")),
        ({"renewBeforeDays": 90}, ("renewBeforeDays", "found 90; accepted: less than lifetimeDays")),
        ({"mode": "manual"}, ("mode", "found a string; accepted: auto or hold")),
        ({"mode": None}, ("mode", "found nothing; accepted: auto or hold")),
    ],
)
def test_wrong_inputs_are_refused_by_name(change: Props, failure: tuple[str, str]) -> None:
    refused = schedule.check(URN, None, {**PROGRAM, **change})
    assert [(each.property, each.reason) for each in refused.failures] == [failure]


@pytest.mark.parametrize("days", [3_000_000, 10**10])
def test_a_lifetime_past_the_calendar_is_refused(set_clock: SetClock, days: int) -> None:
    set_clock(START)
    refused = schedule.check(URN, FIRST_ISSUE, {**PROGRAM, "lifetimeDays": days})
    accepted = "days after 2026-01-31T09:30:15Z that end before the year 10000"
    assert [(each.property, each.reason) for each in refused.failures] == [
        ("lifetimeDays", f"found {days}; accepted: {accepted}")
    ]


def test_unknown_inputs_are_nobodys_mistake() -> None:
    unknown: Props = dict.fromkeys(PROGRAM, UNKNOWN)
    assert checked(**unknown) == unknown


def test_a_clock_that_is_no_timestamp_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDSTACK_CLOCK", "tomorrow")
    with pytest.raises(PluginError, match='IDSTACK_CLOCK: found "tomorrow"; accepted: RFC 3339 such as 2026-01-31T'):
        checked()


def test_outputs_are_the_checked_inputs_in_previews_as_well() -> None:
    created = schedule.create(URN, FIRST_ISSUE, preview=False)
    assert (created.id, created.state) == ("hc1-ingress-schedule", FIRST_ISSUE)
    assert schedule.create(URN, FIRST_ISSUE, preview=True).state == FIRST_ISSUE
    assert schedule.update(URN, "id", {}, {}, FIRST_ISSUE, preview=True) == FIRST_ISSUE


def test_an_import_is_refused_and_a_refresh_keeps_the_state() -> None:
    with pytest.raises(PluginError, match="hc1-ingress-schedule cannot be imported"):
        schedule.read(URN, "id", {}, {})
    refreshed = schedule.read(URN, "id", FIRST_ISSUE, FIRST_ISSUE)
    assert refreshed is not None
    assert (refreshed.inputs, refreshed.state) == (FIRST_ISSUE, FIRST_ISSUE)


@st.composite
def runs(draw: st.DrawFn) -> tuple[timedelta, Props]:
    """The time since the last run, which a clock that was set back makes negative, and what the program asks for."""
    lifetime = draw(st.integers(2, 400))
    return timedelta(hours=draw(st.integers(-48, 24 * 200))), {
        "lifetimeDays": lifetime,
        "renewBeforeDays": draw(st.integers((lifetime + 1) // 2, lifetime - 1)),
        "mode": draw(st.sampled_from(["auto", "auto", "hold"])),
    }


@given(st.lists(runs(), min_size=1, max_size=25))
def test_whatever_the_clock_does_the_current_slot_is_never_the_one_renewed(
    history: list[tuple[timedelta, Props]],
) -> None:
    now, old = START, None
    with pytest.MonkeyPatch.context() as patch:
        for pause, program in history:
            now += pause
            patch.setenv("IDSTACK_CLOCK", rfc3339.render(now))
            new = schedule.check(URN, old, program).inputs
            if old is not None:
                _assert_one_step(old, new, program["mode"])
            old = new


def _assert_one_step(old: Props, new: Props, mode: str) -> None:
    settings = {"lifetimeDays", "renewBeforeDays"}
    changed = {name for name in new if new[name] != old[name]} - settings
    if not changed:
        return
    current, spare = old["current"], "b" if old["current"] == "a" else "a"
    assert mode == "auto"
    assert changed == {spare, "current", "renewal"}, f"{current} is in use and must stay"
    assert new["current"] == spare
    assert new[spare]["generation"] == old[spare]["generation"] + 1
    newest = max(rfc3339.parse(old[slot]["notBefore"]) for slot in ("a", "b"))
    assert rfc3339.parse(new[spare]["notBefore"]) - newest >= timedelta(seconds=1), "loaders keep the old one otherwise"
