"""Applications of the local Azure at their public names: a proxy, and a server with a certificate of every name."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from localcloud.azure.shared.http import AtPublicNames
from localcloud.core.clouds import SERVICES, named
from localcloud.core.serving import ServiceServer
from localcloud.core.tls import ensure_certificate
from localcloud.runtime.daemon import Proxy

_IMDS: Final = "imds"


@dataclass(frozen=True)
class PublicHost:
    """What runs: `apps` are the applications by service, to be set by a test; `proxy` is the proxy's address."""

    proxy: str
    ca_file: Path
    apps: MutableMapping[str, ASGIApp] = field(default_factory=dict)

    def client(self) -> httpx.Client:
        """A client with a proxy and an authority, as any program has from its environment."""
        return httpx.Client(proxy=self.proxy, verify=ssl.create_default_context(cafile=self.ca_file), timeout=30)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = named(Headers(scope=scope)["host"].partition(":")[0])
        await self.apps[_IMDS if found is None else found.service](scope, receive, send)


@contextmanager
def running_public_host(folder: Path) -> Iterator[PublicHost]:
    """A host in a thread of its own, with its certificates in `folder`."""
    ca_file, server_file = folder / "ca.pem", folder / "server.pem"
    ensure_certificate(ca_file, server_file)
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    proxied, tls, plain = listeners
    ports = [listener.getsockname()[1] for listener in listeners]
    host = PublicHost(f"http://127.0.0.1:{ports[0]}", ca_file)
    proxy = Proxy({**dict.fromkeys(SERVICES, ports[1]), _IMDS: ports[2]})
    servers = [(ServiceServer(AtPublicNames(host), server_file), tls), (ServiceServer(host, None), plain)]
    loops: list[asyncio.AbstractEventLoop] = []
    answers = threading.Event()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        answers.set()
        await asyncio.gather(proxy.serve(proxied), *(server.serve([listener]) for server, listener in servers))

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert answers.wait(10), "the host did not start"
    yield host
    loops[0].call_soon_threadsafe(proxy.end)
    for server, _ in servers:
        server.should_exit = True
    thread.join(10)
    assert not thread.is_alive(), "the host did not end"
