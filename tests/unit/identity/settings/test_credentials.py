"""Lifetime, renewal and propagation of the certificates: what is accepted, and everything wrong in one report."""

from __future__ import annotations

import pytest

from identity.settings.schema.model import PropagationSettings
from tests.unit.identity.settings.world import configuration, load, refusals


def test_all_of_it_is_configurable() -> None:
    given = {
        "lifetimeDays": 60,
        "renewBeforeDays": 40,
        "keySize": 4096,
        "renewal": "hold",
        "propagation": {"successes": 7, "settleSeconds": 45, "timeoutSeconds": 900},
    }
    credentials = load(configuration(credentials=given)).credentials
    assert (credentials.lifetime_days, credentials.renew_before_days) == (60, 40)
    assert (credentials.key_size, credentials.renewal) == (4096, "hold")
    assert credentials.propagation == PropagationSettings.model_validate(given["propagation"])


def test_everything_wrong_is_reported_at_once() -> None:
    given = {
        "lifetimeDays": 0,
        "renewBeforeDays": "soon",
        "keySize": 1024,
        "renewal": "never",
        "propagation": {"successes": 0, "settleSeconds": -1, "timeoutSeconds": 10_000},
    }
    assert sorted(refusals(configuration(credentials=given))) == [
        ("credentials.keySize", "key-size"),
        ("credentials.lifetimeDays", "integer"),
        ("credentials.propagation.settleSeconds", "integer"),
        ("credentials.propagation.successes", "integer"),
        ("credentials.propagation.timeoutSeconds", "integer"),
        ("credentials.renewBeforeDays", "integer"),
        ("credentials.renewal", "choice"),
    ]


@pytest.mark.parametrize(
    ("lifetime", "before", "is_accepted"),
    [
        (90, 45, True),
        (90, 89, True),
        (730, 729, True),
        (90, 30, True),
        (730, 30, True),
        (90, 29, False),
        (90, 90, False),
        (30, 9, False),
        (3, 1, False),
        (2, 1, True),
    ],
)
def test_a_certificate_is_renewed_in_the_last_third_of_its_life_at_the_latest(
    lifetime: int, before: int, is_accepted: bool
) -> None:
    found = refusals(configuration(credentials={"lifetimeDays": lifetime, "renewBeforeDays": before}))
    assert found == ([] if is_accepted else [("credentials.renewBeforeDays", "renewal-date")])


@pytest.mark.parametrize(("settle", "timeout", "is_accepted"), [(30, 31, True), (30, 30, False), (0, 1, True)])
def test_the_gate_must_have_time_to_settle(settle: int, timeout: int, is_accepted: bool) -> None:
    propagation = {"settleSeconds": settle, "timeoutSeconds": timeout}
    found = refusals(configuration(credentials={"propagation": propagation}))
    wrong = ("credentials.propagation.timeoutSeconds", "propagation-timeout-too-short")
    assert found == ([] if is_accepted else [wrong])
