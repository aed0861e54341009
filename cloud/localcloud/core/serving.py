"""A server for one service of the local cloud, which stops at once on request."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localcloud.core.tls import expired_file

# For a handler that does not notice that its client is gone.
_GRACE_SECONDS = 1
# Longer than httpx's clients keep an idle connection (5 s, uvicorn's own default, too): with equal times a request can
# meet a connection that is just being closed.
_KEEP_ALIVE_SECONDS = 75
_Handshake = Callable[[ssl.SSLObject | ssl.SSLSocket, str | None, ssl.SSLContext], int | None]
DROP: Final = "localcloud.drop"
"""In a scope's extensions: a function without arguments that closes the request's connection without an answer."""


class ServiceServer(uvicorn.Server):
    """Serves `app`, over TLS with a `server_file`, which has key and certificate.

    While `has_expired` returns true, a handshake shows the expired certificate beside `server_file` instead; it is
    asked at each one, so connections that are open go on. Without the key of the certificate in `client_file`, no
    handshake succeeds.

    Ends when `should_exit` is set, in this or in another thread; until then it runs no code between requests, where
    uvicorn looks ten times a second. Signals are left to the process.
    """

    def __init__(
        self,
        app: ASGIApp,
        server_file: Path | None,
        *,
        has_expired: Callable[[], bool] | None = None,
        client_file: Path | None = None,
    ) -> None:
        self._server_file = server_file
        self._has_expired = has_expired
        self._asked_to_exit = False
        self._woken_loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        super().__init__(
            uvicorn.Config(
                self._served(app),
                ssl_certfile=server_file,
                ssl_keyfile=server_file,
                ssl_ca_certs=None if client_file is None else str(client_file),
                ssl_cert_reqs=ssl.CERT_NONE if client_file is None else ssl.CERT_REQUIRED,
                lifespan="off",
                ws="wsproto",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    @property
    def should_exit(self) -> bool:
        return self._asked_to_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._asked_to_exit = value
        if value and self._woken_loop is not None:
            with suppress(RuntimeError):  # the loop has ended already
                self._woken_loop.call_soon_threadsafe(self._ended.set)

    async def main_loop(self) -> None:
        """Return once `should_exit` is set."""
        self._woken_loop = asyncio.get_running_loop()
        if not self.should_exit:
            await self._ended.wait()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take no signal."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer.

        Answers go out in two pieces, and asyncio switches Nagle's algorithm, which holds the second one back for 40 ms,
        off for sockets of its own making only. Connections inherit the option from the socket that listens.
        """
        for listener in sockets or []:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._has_expired is not None and self._server_file is not None:
            assert self.config.ssl is not None, "uvicorn has made it from the server's file"
            self.config.ssl.sni_callback = _shows(expired_file(self._server_file), when=self._has_expired)
        await super().startup(sockets)

    def _served(self, app: ASGIApp) -> ASGIApp:
        """`app` with `DROP`, and with a `Date` (RFC 9110 6.6.1) on each answer that has none of its own."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            async def answer(message: Message) -> None:
                if message["type"] == "http.response.start":
                    MutableHeaders(scope=message).setdefault("date", format_datetime(datetime.now(UTC), usegmt=True))
                await send(message)

            scope.setdefault("extensions", {})[DROP] = partial(self._drop, tuple(scope.get("client") or ()))
            await app(scope, receive, answer)

        return serve

    def _drop(self, client: tuple[str | int, ...]) -> None:
        for connection in list(self.server_state.connections):
            # Not the transport's own answer: over TLS, asyncio's has none once it was closed.
            if tuple(getattr(connection, "client", None) or ()) == client:
                connection.transport.abort()

    def drop_connections(self) -> None:
        """Close every connection, and so end what is being answered on it."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drop every connection, then end.

        Clients keep connections open between requests, and over TLS asyncio waits 30 s for each one's close_notify; a
        watch on the Kubernetes API never ends by itself.
        """
        self.drop_connections()
        await super().shutdown(sockets)


def _shows(file: Path, *, when: Callable[[], bool]) -> _Handshake:
    """What a handshake does first, also without a name of a server: it shows the certificate in `file` if `when`."""
    other = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    other.load_cert_chain(file)

    def begin(connection: ssl.SSLObject | ssl.SSLSocket, _: str | None, __: ssl.SSLContext) -> None:
        if when():
            connection.context = other

    return begin
