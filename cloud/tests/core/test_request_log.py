"""The log of requests: who asked what of which service, and nothing that could hold a secret."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from localcloud.core.request_log import RequestLog, read
from localcloud.testing.azure import ask


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
