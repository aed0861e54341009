"""Whether the add-on of AKS brings a renewed certificate into the pods within the time that a renewal counts on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.credentials.schedule import LONGEST_POLL
from identity.secrets_store import duration, poll_interval, rotation_command, rotation_fault


def polling(text: str) -> str | None:
    return rotation_fault({"enabled": True, "config": {"enableSecretRotation": "true", "rotationPollInterval": text}})


@given(hours=st.integers(0, 99), minutes=st.integers(0, 999), seconds=st.integers(0, 9999))
def test_every_time_of_go_up_to_an_hour_is_accepted_and_none_beyond(hours: int, minutes: int, seconds: int) -> None:
    interval = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    text = f"{hours}h{minutes}m{seconds}s"

    if interval:
        assert duration(text) == interval
    assert (polling(text) is None) is (timedelta(0) < interval <= LONGEST_POLL)


@given(st.text(max_size=20))
def test_any_other_text_is_refused_and_nothing_is_raised(text: str) -> None:
    try:
        accepted = not text or timedelta(0) < duration(text) <= LONGEST_POLL
    except ValueError:
        accepted = False

    assert (polling(text) is None) is accepted


@pytest.mark.parametrize("text", ["", "2", "2 m", "m", "-2m", "1d", "0s", "0h0m", "2m!", ".5h", "٢m"])
def test_what_the_driver_does_not_read_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=text or "^$"):
        duration(text)


@pytest.mark.parametrize(
    ("config", "is_on"),
    [
        ({}, False),
        ({"enableSecretRotation": "false"}, False),
        (["enableSecretRotation"], False),
        ("enableSecretRotation", False),
        ({"enableSecretRotation": True}, True),
        ({"enableSecretRotation": "True"}, True),
    ],
)
def test_rotation_is_off_unless_it_is_on(config: object, is_on: bool) -> None:
    found = rotation_fault({"enabled": True, "config": config})

    assert found == (None if is_on else "secret rotation is off, so running pods never see a renewed certificate")
    assert poll_interval(config) == timedelta(minutes=2)


@pytest.mark.parametrize("profile", [{}, {"enabled": False}, {"enabled": False, "config": None}])
def test_of_another_driver_nothing_is_known(profile: dict[str, Any]) -> None:
    assert rotation_fault(profile) is None


def test_the_command_can_be_typed() -> None:
    assert rotation_command("aks dev", "aks-1") == (
        "az aks update --resource-group 'aks dev' --name aks-1 --enable-secret-rotation --rotation-poll-interval 2m"
    )
