"""A uvicorn server that runs no code between requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate

import uvicorn
from uvicorn.server import ServerState


class EventServer(uvicorn.Server):
    """Waits for `should_exit` to be set, in this or in another thread.

    uvicorn checks it ten times a second: two thousandths of a core in each probe, a core for fifty hosted clusters.

    The settings that uvicorn checks in the same place, `limit_max_requests` and `callback_notify`, have no effect.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        self._should_exit = False
        self._wake: Callable[[], object] = lambda: None
        super().__init__(config)
        self.server_state = _State(config)

    @property
    def should_exit(self) -> bool:
        """Whether the server is to end."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        if value:
            self._wake()

    async def main_loop(self) -> None:
        """Return once `should_exit` is set."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(ended.set)

        self._wake = wake
        if not self.should_exit:
            await ended.wait()


class _State(ServerState):
    """Makes the default headers for each response, which uvicorn makes once a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        self._config = config
        super().__init__()

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """`Date` and the headers of the configuration."""
        date = [(b"date", formatdate(time.time(), usegmt=True).encode())] if self._config.date_header else []
        return date + self._config.encoded_headers

    @default_headers.setter
    def default_headers(self, _: list[tuple[bytes, bytes]]) -> None:
        """Take no other headers; uvicorn begins with none."""
