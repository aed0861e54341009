"""Looking again and again."""

from __future__ import annotations

import io
from datetime import datetime

from rich.console import Console
from rich.text import Text

from ops.doctor.watching import INTERVAL, watch


def test_each_look_is_shown_until_ctrl_c_and_the_last_is_returned() -> None:
    looks, pauses = iter(["first", "second", "third"]), []
    screen = io.StringIO()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    last = watch(
        lambda: next(looks),
        lambda found: Text(found),
        Console(file=screen, force_terminal=True, width=80),
        pause=pause,
        clock=lambda: datetime(2026, 11, 23, 17, 4, 5),
    )

    assert (last, pauses) == ("second", [INTERVAL, INTERVAL])
    shown = screen.getvalue()
    assert shown.index("first") < shown.index("second")
    assert "17:04:05; again in 15 s, Ctrl-C ends" in shown


def test_ctrl_c_during_the_first_look_returns_nothing() -> None:
    def look() -> str:
        raise KeyboardInterrupt

    assert watch(look, lambda found: Text(found), Console(file=io.StringIO()), pause=lambda _: None) is None
