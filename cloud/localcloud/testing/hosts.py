"""Hosts that serve applications of the local cloud over sockets, so that real clients can be pointed at them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from localcloud.core.serving import ServiceServer
from localcloud.core.tls import ensure_certificate

__all__ = ["Certificates", "Host", "Serve", "ServiceServer", "ensure_certificate", "running"]

_PATIENCE: Final = 60  # seconds until a server that hangs is a failure; no test waits for it otherwise

Serve = Callable[[Starlette], str]
"""Serves an application until the test's end; returns its URL."""


@dataclass(frozen=True)
class Certificates:
    """Files of the servers' TLS: the CA that clients trust, and the server's key and certificate."""

    ca_file: Path
    server_file: Path


class Host(ServiceServer):
    """One port for one application after another: to start and end a server takes longer than most tests."""

    def __init__(
        self, server_file: Path | None, listener: socket.socket, has_expired: Callable[[], bool] | None = None
    ) -> None:
        super().__init__(self, server_file, has_expired=has_expired)
        self._url = f"{'https' if server_file else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        self._app: Starlette | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.answers = threading.Event()

    @property
    def is_idle(self) -> bool:
        """Whether it serves nothing at the moment."""
        return self._app is None

    @contextmanager
    def serving(self, app: Starlette) -> Iterator[str]:
        """Serve `app` and end whatever it still answers."""
        self._app = app
        yield self._url
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._end_requests(), self._loop).result(_PATIENCE)
        self._app = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.answers.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._app is not None, "a request after its test"
        await self._app(scope, receive, send)

    async def _end_requests(self) -> None:
        self.drop_connections()
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)


@contextmanager
def running(server_file: Path | None, has_expired: Callable[[], bool] | None = None) -> Iterator[Host]:
    """A host with this key and certificate, None for plain HTTP, in a thread of its own; `has_expired` as there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = Host(server_file, listener, has_expired)
        thread = threading.Thread(target=host.run, args=([listener],), daemon=True)
        thread.start()
        assert host.answers.wait(_PATIENCE), "the server did not start"
        yield host
        host.should_exit = True
        thread.join(_PATIENCE)
        assert not thread.is_alive(), "the server did not end"
