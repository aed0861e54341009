"""What the engine's Cancel does to the calls under way: what waits ends, with an error in words.

The engine sends Cancel when it is interrupted, and once more at the end of every command. It then starts nothing new,
but waits for every call under way (pulumi/pulumi `pkg/resource/deploy/step_executor.go`) before it writes the state
and unlocks the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import copy_context
from threading import Lock, Thread
from typing import Any, Final, TypeVar

from plugin.provider import PluginError

_T = TypeVar("_T")

_AGAIN: Final = "run the command again"


class PluginInterruptedError(PluginError):
    """The engine was interrupted, so what waited has ended."""


class Cancellation:
    """Whether the engine has cancelled, and what waits for that; safe for many threads. Nothing in it polls."""

    def __init__(self) -> None:
        self._cancelled: Future[None] = Future()
        self._lock = Lock()

    def cancel(self) -> None:
        """End every pause and every call under way; may be called again."""
        with self._lock:
            if not self._cancelled.done():
                self._cancelled.set_result(None)

    def pause(self, seconds: float) -> None:
        """Wait as `time.sleep` does; raises PluginInterruptedError, at once, when the engine cancels."""
        wait([self._cancelled], timeout=seconds)
        if self._cancelled.done():
            raise PluginInterruptedError(f"interrupted while it waited; {_AGAIN}")

    def run(self, work: Callable[[], _T], *, grace: float = 0.0) -> _T:
        """The result of `work`; raises what it raises, or Interrupted when the engine cancels.

        It runs in a daemon thread with the caller's context, and is left behind `grace` seconds after the cancellation.
        """
        if self._cancelled.done():
            raise PluginInterruptedError(f"interrupted before it began; {_AGAIN}")
        outcome: Future[_T] = Future()
        Thread(target=copy_context().run, args=(_settle, outcome, work), daemon=True).start()
        either: tuple[Future[Any], ...] = (outcome, self._cancelled)
        wait(either, return_when=FIRST_COMPLETED)
        wait([outcome], timeout=grace)
        if outcome.done():
            return outcome.result()
        if grace:
            raise PluginInterruptedError(f"interrupted during a request, which may have taken effect; {_AGAIN}")
        raise PluginInterruptedError(f"interrupted; {_AGAIN}")


def _settle(outcome: Future[Any], work: Callable[[], Any]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # the waiting thread raises it
        outcome.set_exception(error)


_PROCESS: Final = Cancellation()
"""One engine, one plugin, one process: every call of it is cancelled together."""

cancel = _PROCESS.cancel
pause = _PROCESS.pause
interruptible = _PROCESS.run
