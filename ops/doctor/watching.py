"""Repeats an examination: on the screen until Ctrl-C, or until a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from threading import Event
from time import monotonic
from typing import Final, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

T = TypeVar("T")

# Seconds between two examinations. The driver polls the vault every two minutes.
INTERVAL: Final = 15.0


def sleep(seconds: float) -> None:
    """Wait without work; Ctrl-C ends it with KeyboardInterrupt."""
    Event().wait(seconds)


def watch(
    examine: Callable[[], T],
    show: Callable[[T], RenderableType],
    console: Console,
) -> T | None:
    """Show the results in the same place until Ctrl-C; returns the last one, None if there was none."""
    last: T | None = None
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live, suppress(KeyboardInterrupt):
        while True:
            last = examine()
            ended = Text(f"\n{datetime.now():%H:%M:%S}; again in {INTERVAL:g} s, Ctrl-C ends", "dim")
            live.update(Group(show(last), ended), refresh=True)
            sleep(INTERVAL)
    return last


def wait_until(
    examine: Callable[[], T],
    is_done: Callable[[T], bool],
    report: Callable[[T], None],
    *,
    seconds: float,
) -> T:
    """Examine until it is done, or the time is over; returns the last result. `report` gets the earlier ones."""
    end = monotonic() + seconds
    while True:
        last = examine()
        left = end - monotonic()
        if is_done(last) or left <= 0:
            return last
        report(last)
        sleep(min(INTERVAL, left))
