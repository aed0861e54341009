"""Requests are repeated when, and as long as, the real providers' clients repeat them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import certifi
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulated.azure_native.provider import RETRY as ARM_RETRY
from emulated.azure_native.provider import ArmClient
from emulated.azuread.graph import RETRY as GRAPH_RETRY
from emulated.client import DeployerCredential, RefusalError, RestClient, Retry
from localcloud.testing.hosts import Certificates, Host, Serve
from plugin import PluginError


class _SignedIn(DeployerCredential):
    def __init__(self) -> None: ...

    def token(self, scope: str) -> str:
        return f"token for {scope}"


class _Service:
    """Answers each request with the next of the given answers, then with 200."""

    def __init__(self, answers: Sequence[Response]) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, str]] = []

    def app(self) -> Starlette:
        async def answer(request: Request) -> Response:
            self.requests.append((request.method, request.headers["authorization"]))
            return self.answers.pop(0) if self.answers else JSONResponse({"id": "x"})

        return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "PUT", "DELETE"])])


_To = Callable[..., RestClient]


@pytest.fixture
def waits() -> list[float]:
    """The seconds that the client has slept."""
    return []


@pytest.fixture
def to(certificates: Certificates, waits: list[float]) -> _To:
    """Makes a client of what is at an address."""
    ca_file = str(certificates.ca_file)
    return lambda url, retry=ARM_RETRY, ca_file=ca_file: RestClient(
        url, "scope", _SignedIn(), ca_file=ca_file, retry=retry, sleep=waits.append
    )


@pytest.fixture
def answering(serve: Serve, to: _To) -> _To:
    """Makes ARM's client of a service that gives these answers."""
    return lambda *answers: to(serve(_Service(answers).app()))


@pytest.mark.parametrize(
    ("retry", "schedule"), [(ARM_RETRY, [20.0, 60.0, 120.0]), (GRAPH_RETRY, [1.0, 2.0, 4.0])], ids=["arm", "graph"]
)
def test_throttling_waits_for_retry_after_or_the_clients_schedule(
    serve: Serve, to: _To, waits: list[float], retry: Retry, schedule: list[float]
) -> None:
    asked = Response(status_code=429, headers={"Retry-After": "7"})
    service = _Service([asked, Response(status_code=503), Response(status_code=429)])
    assert to(serve(service.app()), retry).request("GET", "/x").status_code == 200
    assert waits == [7.0, *schedule[1:]]
    assert service.requests == [("GET", "Bearer token for scope")] * 4


def test_arm_is_asked_four_times_and_no_more(answering: _To, waits: list[float]) -> None:
    assert answering(*[Response(status_code=500)] * 9).request("GET", "/x").status_code == 500
    assert waits == [20.0, 60.0, 120.0]


def _refused(status: int, code: str, message: str = "wait") -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)


def test_only_transient_conflicts_are_retried(answering: _To, waits: list[float]) -> None:
    transient = ("AnotherOperationInProgress", "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity")
    client = answering(*(_refused(409, code) for code in (*transient, "RoleAssignmentExists")))
    with pytest.raises(RefusalError) as refused:
        ArmClient(client).put("/x", "2024-01-01", {})
    assert str(refused.value) == 'Status=409 Code="RoleAssignmentExists" Message="wait"'
    assert waits == [20.0, 60.0]


@pytest.mark.parametrize("code", ["ResourceNotFound", "RoleAssignmentNotFound"])
def test_a_404_means_gone_with_certain_codes(answering: _To, code: str) -> None:
    assert ArmClient(answering(_refused(404, code))).find("/x", "2024-01-01") is None


def test_a_404_with_another_code_is_a_refusal(answering: _To) -> None:
    with pytest.raises(RefusalError, match="ContainerNotFound"):
        ArmClient(answering(_refused(404, "ContainerNotFound"))).find("/x", "2024-01-01")


def test_a_check_of_existence_that_fails_stops_the_create(answering: _To) -> None:
    client = ArmClient(answering(_refused(403, "AuthorizationFailed", "no")))
    with pytest.raises(PluginError, match=r"cannot check existence of resource '/x': status code 403, .*no"):
        client.refuse_existing("/x", "2024-01-01")


def test_a_local_cloud_that_is_down_is_reported_at_once(to: _To, waits: list[float]) -> None:
    with pytest.raises(PluginError, match="the local cloud does not answer"):
        to("https://127.0.0.1:9").request("GET", "/x")
    assert waits == []


@contextmanager
def _ending(connections: int, host: Host | None, listener: socket.socket) -> Iterator[None]:
    """Ends so many connections in their handshakes, each after it has read one byte or everything, then serves."""

    def run() -> None:
        for number in range(connections):
            connection, _ = listener.accept()
            connection.recv(1 if number % 2 else 1 << 16)
            connection.close()
        if host is not None:
            host.run([listener])

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        if host is not None:
            host.should_exit = True
        thread.join()


def test_a_connection_that_ends_in_its_handshake_is_made_again(
    certificates: Certificates, to: _To, waits: list[float]
) -> None:
    service = _Service([])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = Host(certificates.server_file, listener)
        with _ending(2, host, listener), host.serving(service.app()) as url:
            assert to(url, GRAPH_RETRY).request("PUT", "/x").status_code == 200
    assert (len(service.requests), waits) == (1, [1.0, 2.0])


def test_a_service_that_ends_every_connection_is_asked_as_often_as_any(to: _To, waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, _ending(4, None, listener):
        client = to(f"https://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(PluginError, match="/x: the local cloud does not answer"):
            client.request("GET", "/x")
    assert waits == [20.0, 60.0, 120.0]


def test_a_certificate_that_is_not_trusted_is_no_local_cloud_that_is_down(serve: Serve, to: _To) -> None:
    client = to(serve(_Service([]).app()), ca_file=certifi.where())
    with pytest.raises(PluginError, match=r"/x: the answer cannot be taken \(.*CERTIFICATE_VERIFY_FAILED.*\)$"):
        client.request("GET", "/x")
