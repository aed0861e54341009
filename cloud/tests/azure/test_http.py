"""What every service of the local Azure does alike: the shape of its refusals, request ids, latency, TLS."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from cryptography import x509
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from localcloud.azure.shared import http
from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.http import bearer, json_object, service_app
from localcloud.azure.shared.refusals import ServiceError
from localcloud.core import clock
from localcloud.core.tls import ensure_certificate
from localcloud.testing.hosts import running


async def echo(request: Request) -> Response:
    return JSONResponse({"body": await json_object(request), "bearer": bearer(request)})


async def refuse(_: Request) -> Response:
    raise ServiceError(409, "Conflict", "It exists.", {"Retry-After": "7"})


async def fail(_: Request) -> Response:
    raise RuntimeError("a secret value")


def service(faults: Faults | None = None) -> Starlette:
    routes = [
        Route("/echo", echo, methods=["POST"]),
        Route("/refuse", refuse, methods=["GET"]),
        Route("/fail", fail, methods=["GET"]),
    ]
    return service_app("arm", routes, faults=faults or Faults())


def call(
    method: str, path: str, *, faults: Faults | None = None, app: Starlette | None = None, **options: Any
) -> httpx.Response:
    """One request to the service, a new one unless `app` is given, without a network; `options` as httpx takes them."""

    async def answered() -> httpx.Response:
        transport = httpx.ASGITransport(app or service(faults), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="https://management.azure.com") as client:
            return await client.request(method, path, **options)

    return asyncio.run(answered())


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_every_error_has_the_services_form_and_a_request_id() -> None:
    refused = call("GET", "/refuse")
    assert (error(refused), refused.headers["retry-after"]) == ((409, "Conflict"), "7")
    assert error(call("GET", "/nowhere")) == (501, "NotEmulated")
    assert error(call("GET", "/echo")) == (501, "NotEmulated")
    failed = call("GET", "/fail")
    assert error(failed) == (500, "InternalServerError")
    assert "a secret value" not in failed.text
    assert refused.headers["x-ms-request-id"] != call("GET", "/refuse").headers["x-ms-request-id"]


def test_a_path_with_another_ending_is_not_redirected() -> None:
    assert call("POST", "/echo/").status_code == 501


def test_a_body_is_a_json_object_or_nothing() -> None:
    assert call("POST", "/echo").json()["body"] == {}
    assert call("POST", "/echo", json={"a": 1}).json()["body"] == {"a": 1}
    assert error(call("POST", "/echo", content="{")) == (400, "InvalidRequestContent")
    assert error(call("POST", "/echo", json=[1])) == (400, "InvalidRequestContent")


@pytest.mark.parametrize(
    ("header", "token"),
    [("Bearer abc", "abc"), ("bearer abc", "abc"), ("Basic abc", None), ("Bearer ", None), ("", None)],
)
def test_only_a_bearer_counts(header: str, token: str | None) -> None:
    assert call("POST", "/echo", headers={"Authorization": header}).json()["bearer"] == token


def test_the_configured_latency_precedes_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(http, "asyncio", SimpleNamespace(sleep=note))
    faults = Faults(latency={"arm": 2.0, "arm POST": 3.0})
    call("GET", "/refuse", faults=faults)
    call("POST", "/echo", faults=faults)

    assert waited == [2.0, 3.0]


def test_a_refusal_is_logged_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "localcloud.azure.shared.http"):
        call("GET", "/refuse")

    assert caplog.messages == ["arm refused GET /refuse: 409 Conflict"]


def test_the_server_certificate_passes_a_strict_verification(tmp_path: Path) -> None:
    ca_file, server_file = tmp_path / "ca.pem", tmp_path / "server.pem"
    ensure_certificate(ca_file, server_file)
    context = ssl.create_default_context(cafile=ca_file)
    context.verify_flags |= ssl.VERIFY_X509_STRICT

    with running(server_file) as host, host.serving(service()) as url:
        assert httpx.get(f"{url}/refuse", verify=context).status_code == 409


def test_the_certificate_has_all_host_names_and_is_renewed_in_time(tmp_path: Path) -> None:
    ca_file, server_file = tmp_path / "ca.pem", tmp_path / "server.pem"
    ensure_certificate(ca_file, server_file)
    first = server_file.read_bytes()
    ensure_certificate(ca_file, server_file)
    assert server_file.read_bytes() == first

    certificate = x509.load_pem_x509_certificate(first)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "login.microsoftonline.com", "*.vault.azure.net"} <= set(
        names.get_values_for_type(x509.DNSName)
    )
    with clock.moved_ahead(certificate.not_valid_after_utc - datetime.now(UTC) - timedelta(days=20)):
        ensure_certificate(ca_file, server_file)
    assert server_file.read_bytes() != first
