"""A server of the local cloud ends when it is told to, whatever its clients hold on to."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from localcloud.serving import Server
from tests.unit.localcloud.conftest import Certificates


async def answer(_: Request) -> Response:
    return Response("ok")


async def watch(_: Request) -> Response:
    never = asyncio.Event()

    async def events() -> AsyncIterator[str]:
        yield "the first event\n"
        await never.wait()

    return StreamingResponse(events())


def test_neither_an_idle_client_nor_an_endless_answer_holds_a_server_up(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(Starlette(routes=[Route("/", answer), Route("/watch", watch)]), certificates.server_file)
    trusting = ssl.create_default_context(cafile=certificates.ca_file)
    with socket.create_server(("127.0.0.1", 0)) as listener, caplog.at_level(logging.WARNING):
        running = threading.Thread(target=server.run, args=([listener],), daemon=True)
        running.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with httpx.Client(base_url=url, verify=trusting) as idle, httpx.Client(base_url=url, verify=trusting) as busy:
            assert idle.get("/").text == "ok"
            with busy.stream("GET", "/watch") as events:
                assert next(events.iter_lines()) == "the first event"
                server.should_exit = True
                running.join(20)

    # asyncio itself would wait 30 s for each client's farewell.
    assert not running.is_alive()
    assert caplog.messages == []


def test_a_server_keeps_an_idle_connection_longer_than_its_clients_do(certificates: Certificates) -> None:
    server = Server(Starlette(), certificates.server_file)

    assert server.config.timeout_keep_alive > (httpx.Limits().keepalive_expiry or 0)
