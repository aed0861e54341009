"""Renewals that a person asks for: what Check makes of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from identity.credentials.renewal_request import RenewalRequest, read, write
from plugin import PluginError
from tests.unit.provider.conftest import SetClock
from tests.unit.provider.test_renewal_schedule import FIRST_ISSUE, PROGRAM, START, URN, changes, checked, schedule

LATER = START + timedelta(days=3)
RENEWED = {
    **FIRST_ISSUE,
    "current": "b",
    "b": {"generation": 2, "notBefore": "2026-02-03T09:25:15Z", "validDays": 90},
    "renewal": "slot b, asked for at 2026-02-03T09:30:15Z",
}


def test_the_spare_is_renewed_and_becomes_current(set_clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(LATER)
    monkeypatch.setenv("IDSTACK_RENEWALS", '{"hc1-ingress-schedule": "renew"}')

    assert checked(FIRST_ISSUE) == RENEWED
    assert changes(FIRST_ISSUE, RENEWED) == {"b.generation", "b.notBefore", "current", "renewal"}


def test_a_request_comes_before_hold(set_clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(LATER)
    monkeypatch.setenv("IDSTACK_RENEWALS", '{"hc1-ingress-schedule": "renew"}')

    assert checked(FIRST_ISSUE, mode="hold") == RENEWED


def test_what_was_asked_for_stays_in_a_run_without_a_request(set_clock: SetClock) -> None:
    set_clock(LATER)

    assert checked(RENEWED) == RENEWED


def test_the_request_of_another_schedule_changes_nothing(set_clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(LATER)
    monkeypatch.setenv("IDSTACK_RENEWALS", '{"hc2-ingress-schedule": "renew"}')

    assert checked(FIRST_ISSUE) == FIRST_ISSUE


def test_a_second_one_is_refused_while_pods_may_use_what_it_replaces(
    set_clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDSTACK_RENEWALS", '{"hc1-ingress-schedule": "renew"}')
    set_clock(LATER + timedelta(hours=8, minutes=29))

    [failure] = schedule.check(URN, RENEWED, dict(PROGRAM)).failures

    assert failure.reason.startswith(
        "a renewal now would replace the certificate of slot a, with which pods may still sign in until "
        "2026-02-03T18:00:15Z"
    )
    assert "`idstack rotate --force`" in failure.reason

    set_clock(LATER + timedelta(hours=8, minutes=30))
    assert checked(RENEWED)["current"] == "a"


def test_force_does_not_wait(set_clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDSTACK_RENEWALS", '{"hc1-ingress-schedule": "force"}')
    set_clock(LATER)

    renewed = checked(RENEWED)

    assert (renewed["current"], renewed["a"]["generation"]) == ("a", 2)
    assert renewed["a"]["notBefore"] == "2026-02-03T09:25:16Z", "a second later at least, or loaders keep the old one"


def test_a_fresh_spare_leaves_the_current_certificate(set_clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDSTACK_RENEWALS", '{"hc1-ingress-schedule": "fresh-spare"}')
    set_clock(LATER)

    assert checked(RENEWED) == {
        **RENEWED,
        "a": {"generation": 2, "notBefore": "2026-02-03T09:25:14Z", "validDays": 90},
        "renewal": "slot a, issued anew as the spare at 2026-02-03T09:30:15Z",
    }


def test_at_first_a_request_is_no_different_from_none(set_clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDSTACK_RENEWALS", '{"hc1-ingress-schedule": "force"}')
    set_clock(START)

    assert checked() == FIRST_ISSUE


@pytest.mark.parametrize("text", ["renew", '["hc1-ingress-schedule"]', '{"hc1-ingress-schedule": "soon"}'])
def test_a_variable_of_another_form_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("IDSTACK_RENEWALS", text)

    with pytest.raises(
        PluginError, match=r"IDSTACK_RENEWALS: found .*; accepted: a JSON object of renew, force, fresh-"
    ):
        schedule.check(URN, FIRST_ISSUE, dict(PROGRAM))


def test_what_is_written_is_read() -> None:
    environ = write({"hc1-kms-schedule": RenewalRequest.FORCE})

    assert (read("hc1-kms-schedule", environ), read("hc1-disk-schedule", environ)) == (RenewalRequest.FORCE, None)
