"""A server of the local cloud: it answers without delay, ends what its clients hold on to, and logs what they asked."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from localcloud.core.request_log import RequestLog, read
from localcloud.core.serving import ServiceServer
from localcloud.testing.azure import ask
from localcloud.testing.hosts import Certificates


async def answer(_: Request) -> Response:
    return Response("ok")


async def watch(_: Request) -> Response:
    never = asyncio.Event()

    async def events() -> AsyncIterator[str]:
        yield "the first event\n"
        await never.wait()

    return StreamingResponse(events())


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def server(certificates: Certificates) -> ServiceServer:
    return ServiceServer(Starlette(routes=[Route("/", answer), Route("/watch", watch)]), certificates.server_file)


@pytest.fixture
def running(server: ServiceServer, listener: socket.socket) -> threading.Thread:
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    return thread


@pytest.fixture
def client(listener: socket.socket, certificates: Certificates) -> Callable[[], httpx.Client]:
    """Makes clients of the server."""
    trusting = ssl.create_default_context(cafile=certificates.ca_file)
    return lambda: httpx.Client(base_url=f"https://127.0.0.1:{listener.getsockname()[1]}", verify=trusting)


def test_idle_clients_and_endless_answers_do_not_delay_a_servers_end(
    server: ServiceServer,
    running: threading.Thread,
    client: Callable[[], httpx.Client],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), client() as idle, client() as busy:
        assert idle.get("/").text == "ok"
        with busy.stream("GET", "/watch") as events:
            assert next(events.iter_lines()) == "the first event"
            server.should_exit = True
            # asyncio itself would wait 30 s for each client's farewell.
            running.join(20)

    assert not running.is_alive()
    assert caplog.messages == []


def test_the_second_half_of_an_answer_is_not_held_back(
    server: ServiceServer, running: threading.Thread, client: Callable[[], httpx.Client]
) -> None:
    with client() as early, client() as waiting:
        early.get("/")  # which may have connected before the server began
        waiting.get("/")
        accepted = [connection.transport.get_extra_info("socket") for connection in server.server_state.connections]
        assert any(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for peer in accepted)

    server.should_exit = True
    running.join(20)


def test_a_server_keeps_an_idle_connection_longer_than_its_clients_do(server: ServiceServer) -> None:
    assert server.config.timeout_keep_alive > (httpx.Limits().keepalive_expiry or 0)


def test_a_server_without_requests_runs_no_code(
    server: ServiceServer, client: Callable[[], httpx.Client], monkeypatch: pytest.MonkeyPatch, listener: socket.socket
) -> None:
    """uvicorn ticks as soon as it serves, and then ten times a second."""
    ticks: list[int] = []

    async def on_tick(_: uvicorn.Server, counter: int) -> bool:
        ticks.append(counter)
        return server.should_exit

    monkeypatch.setattr(uvicorn.Server, "on_tick", on_tick)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    with client() as asking:
        assert asking.get("/").text == "ok"
    server.should_exit = True
    thread.join(20)

    assert ticks == []


def test_each_answer_has_the_time_it_was_given_at(
    running: threading.Thread, client: Callable[[], httpx.Client]
) -> None:
    with client() as asking:
        date = asking.get("/").headers["date"]

    assert abs(parsedate_to_datetime(date) - datetime.now(UTC)) < timedelta(seconds=10)


class ClosedTransport:
    """What asyncio leaves of a TLS connection that was closed (3.11 to 3.13): it knows no address any more."""

    def get_extra_info(self, name: str) -> object:
        raise AttributeError("'NoneType' object has no attribute '_get_extra_info'")

    def abort(self) -> None:
        """Nothing is left to close."""


def test_a_connection_is_dropped_beside_one_that_was_closed(server: ServiceServer) -> None:
    dropped = MagicMock(client=("127.0.0.1", 2))
    closed = MagicMock(client=("127.0.0.1", 1), transport=ClosedTransport())
    server.server_state.connections |= {closed, dropped}
    for client in (("127.0.0.1", 1), ("127.0.0.1", 2)):
        server._drop(client)
    dropped.transport.abort.assert_called_once_with()


async def created(_: Request) -> Response:
    return Response("ok", 201)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


@pytest.fixture
def app(file: Path) -> Iterator[ASGIApp]:
    log = RequestLog(file)
    yield log.around("keyvault", Starlette(routes=[Route("/secrets/{name}", created, methods=["PUT"])]))
    log.close()


def send(app: ASGIApp, method: str, path: str, **options: Any) -> None:
    ask(app, "https://one.vault.azure.net", method, path, **options)


def test_an_answered_request_is_a_line(app: ASGIApp, file: Path) -> None:
    send(app, "PUT", "/secrets/a%20b", headers={"User-Agent": "azsdk-go-azidentity/v1 (go)"})

    [logged] = read(file)

    assert datetime.fromisoformat(logged.time).tzinfo is not None
    assert (logged.service, logged.method, logged.host) == ("keyvault", "PUT", "one.vault.azure.net")
    assert (logged.path, logged.status, logged.client) == ("/secrets/a b", 201, "azsdk-go-azidentity/v1 (go)")


def test_a_refused_request_is_a_line(app: ASGIApp, file: Path) -> None:
    send(app, "GET", "/nothing")

    assert [request.status for request in read(file)] == [404]


def test_query_headers_and_body_are_left_out(app: ASGIApp, file: Path) -> None:
    send(app, "PUT", "/secrets/a?code=MARKER", headers={"Authorization": "Bearer MARKER"}, content="MARKER")

    assert "MARKER" not in file.read_text()


def test_the_log_is_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RequestLog(file)
    monkeypatch.setattr(log._handler, "maxBytes", 1_000)
    bounded = log.around("arm", Starlette())
    for number in range(50):
        send(bounded, "GET", f"/{number}")
    log.close()

    kept = list(read(file))

    assert kept[-1].path == "/49"
    assert [request.path for request in kept] == [f"/{number}" for number in range(50 - len(kept), 50)]
    assert sum(path.stat().st_size for path in file.parent.iterdir()) <= 2_000


def test_no_file_is_no_request(file: Path) -> None:
    assert list(read(file)) == []


def test_a_line_that_is_being_written_is_left_out(app: ASGIApp, file: Path) -> None:
    send(app, "GET", "/one")
    file.write_text(file.read_text() + '{"time": "2026')

    assert [request.path for request in read(file)] == ["/one"]
