"""The daemon: every service of the local cloud in one process and one event loop.

Handlers are coroutines that do their short work on the store without awaiting in between, so each request is atomic.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing, suppress
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from localcloud.azure.aks_webhooks.api import app as aks_webhooks
from localcloud.azure.arm.api import app as arm
from localcloud.azure.blob.api import app as blob
from localcloud.azure.entra.api import app as entra
from localcloud.azure.entra.federation import Issuers
from localcloud.azure.graph.api import app as graph
from localcloud.azure.imds.api import app as imds
from localcloud.azure.keyvault.api import app as keyvault
from localcloud.azure.shared.http import AtPublicNames
from localcloud.core import processes
from localcloud.core.clouds import SERVICES as SERVICES_WITH_PUBLIC_NAMES
from localcloud.core.clouds import named
from localcloud.core.request_log import RequestLog
from localcloud.core.serving import ServiceServer
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import StoreError
from localcloud.kubernetes.api import app as kubernetes
from localcloud.runtime.environment import CONTROL, PROXY, Prepared, is_plain_text, listen, prepare
from localcloud.runtime.lifecycle import DAEMON
from localcloud.runtime.seed import seed

# The daemon's own service, beside Azure's: `POST /seed` creates what the seed has and is missing.
#
# `start` and `seed` ask the daemon, which has imported the whole local cloud already; that would take them a second.


def _control(state: StateDirectory) -> Starlette:
    """The service. An answer is `{"added": <number of resources>}`, or the reason of a failure as text.

    A request has no content, so it takes no token: its sender changes nothing that a start would not change.
    """

    async def create(_: Request) -> Response:
        try:
            # Since the daemon's own start, another seed may have been chosen, or files be gone.
            with closing(prepare(state)) as prepared:
                added = seed(prepared)
        except StoreError as error:
            return PlainTextResponse(str(error), error.status)
        return JSONResponse({"added": added})

    return Starlette(routes=[Route("/seed", create, methods=["POST"])])


_APPS: dict[str, Callable[[Prepared], Starlette]] = {
    "entra": lambda prepared: entra(
        prepared.cloud, Issuers(prepared.state.ca_file, prepared.environment.blob_endpoint)
    ),
    "arm": lambda prepared: arm(prepared.cloud),
    "graph": lambda prepared: graph(prepared.cloud),
    "keyvault": lambda prepared: keyvault(prepared.cloud),
    "blob": lambda prepared: blob(prepared.cloud),
    "imds": lambda prepared: imds(prepared.cloud),
    "aks-webhooks": lambda prepared: aks_webhooks(prepared.cloud),
    "kubernetes": lambda prepared: kubernetes(
        prepared.store, prepared.kubernetes_token, prepared.state.root, prepared.cloud.tokens
    ),
}


# Not Azure's, and called all the time by the kubelet.
_NOT_LOGGED: Final = ("kubernetes",)
# For services that only the proxy connects to.
_ANY_PORT: Final = 0


class AlreadyRunningError(RuntimeError):
    """Another daemon serves this state directory."""


def run(state: StateDirectory) -> None:
    """Serve until SIGTERM or SIGINT; raises `AlreadyRunningError`, `environment.PortTakenError`, `StoreError`."""
    prepared = prepare(state)
    try:
        prepared.store.check()
        if other := processes.alive(state.pids, DAEMON):
            raise AlreadyRunningError(f"the local cloud of {state.root} is running already, as process {other.pid}")
        log = RequestLog(prepared.state.requests_file)
        apps: dict[str, ASGIApp] = {service: _APPS[service](prepared) for service in prepared.services}
        apps |= {service: log.around(service, app) for service, app in apps.items() if service not in _NOT_LOGGED}
        servers = [(_server(prepared, name, app), listen(name, prepared.ports[name])) for name, app in apps.items()]
        public = {
            name: (_server(prepared, name, AtPublicNames(app)), listen(name, _ANY_PORT))
            for name, app in apps.items()
            if name in SERVICES_WITH_PUBLIC_NAMES
        }
        targets = {name: listener.getsockname()[1] for name, (_, listener) in public.items()}
        proxy = Proxy({**targets, "imds": prepared.ports["imds"]})
        proxied = listen(PROXY, prepared.ports[PROXY])
        controlled = (_server(prepared, CONTROL, _control(state)), listen(CONTROL, prepared.ports[CONTROL]))
        record = processes.record(state.pids, DAEMON, os.getpid())
        try:
            with state.in_use():
                asyncio.run(_serve([*servers, *public.values(), controlled], proxy, proxied))
        finally:
            log.close()
            record.file.unlink(missing_ok=True)
    finally:
        prepared.close()


def _server(prepared: Prepared, service: str, app: ASGIApp) -> ServiceServer:
    if is_plain_text(service):
        return ServiceServer(app, None)
    holder = prepared.cloud.holder
    return ServiceServer(app, prepared.state.server_file, has_expired=lambda: service in holder.now().expired_tls)


async def _serve(servers: list[tuple[ServiceServer, socket.socket]], proxy: Proxy, proxied: socket.socket) -> None:
    def end() -> None:
        proxy.end()
        for server, _ in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    await asyncio.gather(proxy.serve(proxied), *(server.serve(sockets=[listener]) for server, listener in servers))


IMDS: Final = "169.254.169.254"
_ADDRESS: Final = "127.0.0.1"
_TLS_PORT: Final = 443
_LONGEST_HEAD: Final = 1 << 16  # bytes
_CHUNK: Final = 1 << 16
_TUNNEL: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Proxy:
    """Forwards connections to the services; `ports` are theirs, by name, with `imds` in plain text."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        self._ports = ports
        self._tunnels: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Let `serve` return."""
        self._ended.set()

    async def serve(self, listener: socket.socket) -> None:
        """Answer until `end`; then every tunnel is closed."""
        server = await asyncio.start_server(self._accept, sock=listener, limit=_LONGEST_HEAD)
        await self._ended.wait()
        server.close()
        for tunnel in self._tunnels:
            tunnel.cancel()
        await asyncio.gather(*self._tunnels, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tunnel = asyncio.current_task()
        assert tunnel is not None
        self._tunnels.add(tunnel)
        try:
            # The last is `serve`'s own cancellation: asyncio would log it as a failure of the server.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
                await self._answer(reader, writer)
        finally:
            self._tunnels.discard(tunnel)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = head.decode("latin-1").partition(" ")
        target = rest.partition(" ")[0]
        port = self._port_of(method, target)
        if port is None:
            writer.write(_refusal(target))
            await writer.drain()
            return
        service_reader, service_writer = await asyncio.open_connection(_ADDRESS, port)
        try:
            if method == "CONNECT":
                writer.write(_TUNNEL)
            else:
                service_writer.write(_in_origin_form(head))
            await _first_of(_copy(reader, service_writer), _copy(service_reader, writer))
        finally:
            service_writer.close()

    def _port_of(self, method: str, target: str) -> int | None:
        """The port of the requested service, None for a host that is not Azure's."""
        if method != "CONNECT":
            return self._ports["imds"] if urlsplit(target).hostname == IMDS else None
        host, _, port = target.rpartition(":")
        cloud = named(host)
        return self._ports[cloud.service] if cloud is not None and port == str(_TLS_PORT) else None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


async def _first_of(*copies: Coroutine[None, None, None]) -> None:
    """Run all of them until one ends: if one side closes its connection, the other is closed too."""
    tasks = [asyncio.ensure_future(copy) for copy in copies]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _in_origin_form(head: bytes) -> bytes:
    """The head of a request to a server instead of a proxy (RFC 9112 3.2.1), which closes the connection after it."""
    line, _, fields = head.partition(b"\r\n")
    method, target, version = line.split(b" ", 2)
    parts = urlsplit(target.decode("latin-1"))
    path = f"{parts.path or '/'}?{parts.query}".rstrip("?").encode("latin-1")
    return b"\r\n".join([b" ".join([method, path, version]), b"Connection: close", fields])


def _refusal(target: str) -> bytes:
    text = (
        f"The local cloud's proxy reaches the names of Azure's services alone, and {target} is none of those that it "
        "emulates.\n"
    ).encode()
    return (
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        + f"Content-Length: {len(text)}\r\n\r\n".encode()
        + text
    )
