"""Looks again and again: until Ctrl-C with the last look on the screen, or until something is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from threading import Event
from typing import Final, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

T = TypeVar("T")

# Between two looks, which take some seconds themselves. The driver polls the vault every two minutes.
INTERVAL: Final = 15.0


def sleep(seconds: float) -> None:
    """Wait without work; Ctrl-C ends it with KeyboardInterrupt."""
    Event().wait(seconds)


def watch(
    look: Callable[[], T],
    show: Callable[[T], RenderableType],
    console: Console,
    *,
    pause: Callable[[float], object],
    clock: Callable[[], datetime] = datetime.now,
) -> T | None:
    """Show one look after the other in the same place until Ctrl-C; returns the last, None if it ended before one."""
    last: T | None = None
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live, suppress(KeyboardInterrupt):
        while True:
            last = look()
            ended = Text(f"\n{clock():%H:%M:%S}; again in {INTERVAL:g} s, Ctrl-C ends", "dim")
            live.update(Group(show(last), ended), refresh=True)
            pause(INTERVAL)
    return last


def await_it(
    look: Callable[[], T],
    is_over: Callable[[T], bool],
    tell: Callable[[T], None],
    *,
    seconds: float,
    pause: Callable[[float], object],
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Look until it is over, or until the time is; returns the last look. `tell` gets the ones in between."""
    end = clock() + seconds
    while True:
        last = look()
        left = end - clock()
        if is_over(last) or left <= 0:
            return last
        tell(last)
        pause(min(INTERVAL, left))
