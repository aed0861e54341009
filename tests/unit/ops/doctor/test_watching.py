"""Looking again and again."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

from ops.commands import doctor
from ops.commands.doctor import INTERVAL, wait_until, watch


def test_each_look_is_shown_until_ctrl_c_and_the_last_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, pauses = iter(["first", "second", "third"]), []
    screen = io.StringIO()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "sleep", pause)

    last = watch(lambda: next(looks), lambda found: Text(found), Console(file=screen, force_terminal=True, width=80))

    assert (last, pauses) == ("second", [INTERVAL, INTERVAL])
    shown = screen.getvalue()
    assert shown.index("first") < shown.index("second")
    assert re.search(r"\d\d:\d\d:\d\d; again in 15 s, Ctrl-C ends", shown)


def test_ctrl_c_during_the_first_look_returns_nothing() -> None:
    def look() -> str:
        raise KeyboardInterrupt

    assert watch(look, lambda found: Text(found), Console(file=io.StringIO())) is None


@pytest.mark.parametrize(
    ("seconds", "looks", "last"),
    [
        (600, ["broken", "broken", "sound"], "sound"),
        (20, ["broken", "broken", "broken"], "broken"),
        (0, ["broken"], "broken"),
    ],
    ids=["until-it-is-over", "until-the-time-is", "once"],
)
def test_waiting_ends_when_it_is_over_or_the_time_is(
    monkeypatch: pytest.MonkeyPatch, seconds: float, looks: list[str], last: str
) -> None:
    now, told, left = [0.0], list[str](), iter(looks)

    def pause(length: float) -> None:
        now[0] += length

    monkeypatch.setattr(doctor, "sleep", pause)
    monkeypatch.setattr(doctor, "monotonic", lambda: now[0])

    found = wait_until(lambda: next(left), lambda seen: seen == "sound", told.append, seconds=seconds)

    assert (found, told, list(left)) == (last, looks[:-1], [])
    assert now[0] <= seconds
