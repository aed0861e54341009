"""Waiting that ends with the engine's Cancel, and work that is left behind."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from threading import Event, Thread

import pytest

from plugin import PluginError, PluginInterruptedError
from plugin.servicer import Cancellation

_NAME: ContextVar[str] = ContextVar("name", default="nobody")


def _when(event: Event, action: Callable[[], object]) -> None:
    """Do something, in another thread, once the event has come."""
    Thread(target=lambda: event.wait() and action(), daemon=True).start()


def test_work_that_ends_is_its_result_or_its_error() -> None:
    cancellation = Cancellation()

    def bug() -> None:
        raise KeyError("bug")

    assert cancellation.run(lambda: 4) == 4
    _NAME.set("somebody")
    assert cancellation.run(_NAME.get) == "somebody", "it runs in the caller's context"
    with pytest.raises(KeyError, match="bug"):
        cancellation.run(bug)


def test_work_that_hangs_is_left_behind() -> None:
    cancellation, begun, never = Cancellation(), Event(), Event()

    def hang() -> None:
        begun.set()
        never.wait()

    _when(begun, cancellation.cancel)
    with pytest.raises(PluginInterruptedError, match=r"^interrupted; run the command again$"):
        cancellation.run(hang)
    never.set()


def test_a_write_that_answers_within_its_grace_counts() -> None:
    cancellation, begun, cancelled = Cancellation(), Event(), Event()

    def write() -> str:
        begun.set()
        cancelled.wait()
        return "written"

    def cancel() -> None:
        cancellation.cancel()
        cancelled.set()

    _when(begun, cancel)
    assert cancellation.run(write, grace=60) == "written"


def test_a_pause_ends_at_once_when_it_is_over_or_cancelled() -> None:
    cancellation = Cancellation()
    cancellation.pause(0)

    cancellation.cancel()

    with pytest.raises(PluginError, match="interrupted while it waited"):
        cancellation.pause(3600)
    with pytest.raises(PluginError, match="interrupted before it began"):
        cancellation.run(lambda: 4)
