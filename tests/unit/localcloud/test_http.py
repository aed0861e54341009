"""What every service of the local Azure does alike: the shape of its refusals, request ids, latency, TLS."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from localcloud import clock
from localcloud.azure.dials import Dials
from localcloud.azure.http import ServiceError, bearer, json_object, service_app
from localcloud.tls import ensure_certificate
from tests.unit.localcloud.conftest import Certificates, Serve


async def echo(request: Request) -> Response:
    return JSONResponse({"body": await json_object(request), "bearer": bearer(request)})


async def refuse(_: Request) -> Response:
    raise ServiceError(409, "Conflict", "It exists.", {"Retry-After": "7"})


async def fail(_: Request) -> Response:
    raise RuntimeError("a secret value")


def service(dials: Dials | None = None) -> Starlette:
    routes = [
        Route("/echo", echo, methods=["POST"]),
        Route("/refuse", refuse, methods=["GET"]),
        Route("/fail", fail, methods=["GET"]),
    ]
    return service_app("arm", routes, dials=dials or Dials())


@pytest.fixture
def client() -> TestClient:
    return TestClient(service(), raise_server_exceptions=False)


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_every_failure_has_the_services_shape_and_a_request_id(client: TestClient) -> None:
    refused = client.get("/refuse")
    assert (error(refused), refused.headers["retry-after"]) == ((409, "Conflict"), "7")
    assert error(client.get("/nowhere")) == (404, "NotFound")
    assert error(client.get("/echo")) == (405, "MethodNotAllowed")
    assert error(client.get("/fail")) == (500, "InternalServerError")
    assert "a secret value" not in client.get("/fail").text
    ids = {client.get("/refuse").headers["x-ms-request-id"] for _ in range(2)}
    assert len(ids) == 2


def test_a_path_with_another_ending_is_not_redirected(client: TestClient) -> None:
    assert client.post("/echo/", follow_redirects=False).status_code == 404


def test_a_body_is_a_json_object_or_nothing(client: TestClient) -> None:
    assert client.post("/echo").json()["body"] == {}
    assert client.post("/echo", json={"a": 1}).json()["body"] == {"a": 1}
    assert error(client.post("/echo", content="{")) == (400, "InvalidRequestContent")
    assert error(client.post("/echo", json=[1])) == (400, "InvalidRequestContent")


@pytest.mark.parametrize(
    ("header", "token"),
    [("Bearer abc", "abc"), ("bearer abc", "abc"), ("Basic abc", None), ("Bearer ", None), ("", None)],
)
def test_only_a_bearer_counts(client: TestClient, header: str, token: str | None) -> None:
    assert client.post("/echo", headers={"Authorization": header}).json()["bearer"] == token


def test_the_dialled_latency_comes_before_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    slow = TestClient(service(Dials(latency={"arm": 2.0, "arm POST": 3.0})))
    slow.get("/refuse")
    slow.post("/echo")

    assert waited == [2.0, 3.0]


def test_the_server_certificate_stands_a_strict_verification(serve: Serve, certificates: Certificates) -> None:
    context = ssl.create_default_context(cafile=certificates.ca_file)
    context.verify_flags |= ssl.VERIFY_X509_STRICT

    assert httpx.get(f"{serve(service())}/refuse", verify=context).status_code == 409


def test_the_certificate_names_what_clients_dial_and_is_renewed_in_time(tmp_path: Path) -> None:
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
