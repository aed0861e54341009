"""An HTTP proxy that answers Azure's public names from the services of this machine, and connects to no other host.

Clients use it unmodified: they open a tunnel (CONNECT, RFC 9110 9.3.6) to `management.azure.com:443`, and the service
at its end has a certificate of that name. IMDS is asked in plain text, so its requests come as they are.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from localcloud.core.public_names import named

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
