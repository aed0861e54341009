"""Threads and tasks that ask one loader for tokens at the same time, and the hours that pass meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from azure.core.credentials import AccessToken

from identity.credentials.token_credential import MountedCredential
from tests.load.entra import EntraProcess
from tests.unit.identity.credentials.watching import PATIENCE, FakeClock

# What came of asking: the token, or why there is none.
Answer = AccessToken | BaseException


class Hours(FakeClock):
    """The time of the loader, of azure-identity and MSAL below it, and of the local cloud; a test moves it."""

    def __init__(self, entra: EntraProcess, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._entra = entra
        self._ahead = 0.0
        real = time.time
        patch.setattr(time, "time", lambda: real() + self._ahead)

    def advance(self, seconds: float) -> None:
        self._entra.advance(float(seconds))
        self._ahead += seconds
        super().advance(seconds)


class Callers:
    """`threads` threads and `tasks` tasks of one event loop."""

    def __init__(self, credential: MountedCredential, threads: int, tasks: int) -> None:
        self._credential = credential
        self._tasks = tasks
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="caller")
        self._loop = asyncio.new_event_loop()
        workers = ThreadPoolExecutor(tasks or 1, thread_name_prefix="task")
        # All at once: an executor makes another thread only while none is idle, so their number would grow for hours.
        begun = threading.Barrier(tasks + 1)
        for _ in range(tasks):
            workers.submit(begun.wait, PATIENCE)
        begun.wait(PATIENCE)
        self._loop.set_default_executor(workers)
        self._looping = threading.Thread(target=self._loop.run_forever, name="caller's loop")
        self._looping.start()

    @property
    def number(self) -> int:
        """Of threads and tasks."""
        return self._threads + self._tasks

    def ask(self, scopes: Sequence[str], claims: Callable[[int], str | None]) -> Callable[[], list[Answer]]:
        """Let all ask at once, in turn for one of the `scopes`, with the claims of their number.

        Returns a function that waits for the answers.
        """
        start = threading.Barrier(self._threads + 1)

        def ask(number: int) -> Answer:
            start.wait(PATIENCE)
            try:
                return self._credential.get_token(scopes[number % len(scopes)], claims=claims(number))
            except Exception as error:
                return error

        async def ask_all() -> list[Answer]:
            start.wait(PATIENCE)
            numbers = range(self._threads, self.number)
            get_token = self._credential.get_token
            asked = (
                asyncio.to_thread(get_token, scopes[number % len(scopes)], claims=claims(number)) for number in numbers
            )
            return await asyncio.gather(*asked, return_exceptions=True)

        asking = [self._pool.submit(ask, number) for number in range(self._threads)]
        tasks: Future[list[Answer]] = asyncio.run_coroutine_threadsafe(ask_all(), self._loop)

        def answers() -> list[Answer]:
            return [*(future.result(PATIENCE) for future in asking), *tasks.result(PATIENCE)]

        return answers

    def end(self) -> None:
        """Close the credential, and end the threads."""
        self._credential.close()
        asyncio.run_coroutine_threadsafe(self._loop.shutdown_default_executor(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._looping.join(PATIENCE)
        self._loop.close()
        self._pool.shutdown()


@contextmanager
def calling(credential: MountedCredential, threads: int, tasks: int) -> Iterator[Callers]:
    """Callers that share `credential`, which closes with the block."""
    callers = Callers(credential, threads, tasks)
    try:
        yield callers
    finally:
        callers.end()


def failures(answers: Sequence[Any]) -> list[BaseException]:
    """Those who got no token."""
    return [answer for answer in answers if isinstance(answer, BaseException)]
