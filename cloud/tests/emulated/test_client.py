"""The plugins' clients: which stacks they serve, and that requests are repeated as the real providers repeat them."""

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

from emulated.azure_native.provider import AzureNative
from emulated.azure_native.session import RETRY as ARM_RETRY
from emulated.azure_native.session import ArmClient
from emulated.azuread.graph import RETRY as GRAPH_RETRY
from emulated.azuread.provider import AzureAd
from emulated.client import DeployerCredential, RefusalError, RestClient, Retry
from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE, LOCAL_TENANT_ID
from localcloud.testing.hosts import Certificates, Host
from plugin import UNKNOWN, PluginError, Provider, Secret


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


def _client(
    serve: Callable[[Starlette], str], ca_file: str, service: _Service, retry: Retry
) -> tuple[RestClient, list[float]]:
    waits: list[float] = []
    base_url = serve(service.app())
    return RestClient(base_url, "scope", _SignedIn(), ca_file=ca_file, retry=retry, sleep=waits.append), waits


@pytest.fixture
def ca_file(certificates: object) -> str:
    return str(certificates.ca_file)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("retry", "schedule"), [(ARM_RETRY, [20.0, 60.0, 120.0]), (GRAPH_RETRY, [1.0, 2.0, 4.0])], ids=["arm", "graph"]
)
def test_throttling_waits_for_retry_after_or_the_clients_schedule(
    serve: Callable[[Starlette], str], ca_file: str, retry: Retry, schedule: list[float]
) -> None:
    asked = Response(status_code=429, headers={"Retry-After": "7"})
    service = _Service([asked, Response(status_code=503), Response(status_code=429)])
    client, waits = _client(serve, ca_file, service, retry)
    assert client.request("GET", "/x").status_code == 200
    assert waits == [7.0, *schedule[1:]]
    assert service.requests == [("GET", "Bearer token for scope")] * 4


def test_arm_is_asked_four_times_and_no_more(serve: Callable[[Starlette], str], ca_file: str) -> None:
    service = _Service([Response(status_code=500)] * 9)
    client, waits = _client(serve, ca_file, service, ARM_RETRY)
    assert client.request("GET", "/x").status_code == 500
    assert waits == [20.0, 60.0, 120.0]


def test_only_transient_conflicts_are_retried(serve: Callable[[Starlette], str], ca_file: str) -> None:
    def conflict(code: str) -> Response:
        return JSONResponse({"error": {"code": code, "message": "wait"}}, status_code=409)

    service = _Service(
        [
            conflict("AnotherOperationInProgress"),
            conflict("ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"),
            conflict("RoleAssignmentExists"),
        ]
    )
    client, waits = _client(serve, ca_file, service, ARM_RETRY)
    with pytest.raises(RefusalError) as refused:
        ArmClient(client).put("/x", "2024-01-01", {})
    assert str(refused.value) == 'Status=409 Code="RoleAssignmentExists" Message="wait"'
    assert waits == [20.0, 60.0]


@pytest.mark.parametrize(
    ("code", "gone"), [("ResourceNotFound", True), ("RoleAssignmentNotFound", True), ("ContainerNotFound", False)]
)
def test_a_404_means_gone_only_with_certain_codes(
    serve: Callable[[Starlette], str], ca_file: str, code: str, gone: bool
) -> None:
    answer = JSONResponse({"error": {"code": code, "message": "?"}}, status_code=404)
    client, _ = _client(serve, ca_file, _Service([answer]), ARM_RETRY)
    if gone:
        assert ArmClient(client).find("/x", "2024-01-01") is None
        return
    with pytest.raises(RefusalError, match=code):
        ArmClient(client).find("/x", "2024-01-01")


def test_a_check_of_existence_that_fails_stops_the_create(serve: Callable[[Starlette], str], ca_file: str) -> None:
    answer = JSONResponse({"error": {"code": "AuthorizationFailed", "message": "no"}}, status_code=403)
    client, _ = _client(serve, ca_file, _Service([answer]), ARM_RETRY)
    with pytest.raises(PluginError, match=r"cannot check existence of resource '/x': status code 403, .*no"):
        ArmClient(client).refuse_existing("/x", "2024-01-01")


def test_a_local_cloud_that_is_down_is_reported_at_once(ca_file: str) -> None:
    waits: list[float] = []
    client = RestClient("https://127.0.0.1:9", "s", _SignedIn(), ca_file=ca_file, retry=ARM_RETRY, sleep=waits.append)
    with pytest.raises(PluginError, match="the local cloud does not answer"):
        client.request("GET", "/x")
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


def test_a_connection_that_ends_in_its_handshake_is_made_again(certificates: Certificates, ca_file: str) -> None:
    waits: list[float] = []
    service = _Service([])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = Host(certificates.server_file, listener)
        with _ending(2, host, listener), host.serving(service.app()) as url:
            client = RestClient(url, "s", _SignedIn(), ca_file=ca_file, retry=GRAPH_RETRY, sleep=waits.append)
            assert client.request("PUT", "/x").status_code == 200
    assert (len(service.requests), waits) == (1, [1.0, 2.0])


def test_a_service_that_ends_every_connection_is_asked_as_often_as_any(ca_file: str) -> None:
    waits: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, _ending(4, None, listener):
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        client = RestClient(url, "s", _SignedIn(), ca_file=ca_file, retry=ARM_RETRY, sleep=waits.append)
        with pytest.raises(PluginError, match="/x: the local cloud does not answer"):
            client.request("GET", "/x")
    assert waits == [20.0, 60.0, 120.0]


def test_a_certificate_that_is_not_trusted_is_no_local_cloud_that_is_down(serve: Callable[[Starlette], str]) -> None:
    client, _ = _client(serve, certifi.where(), _Service([JSONResponse({})]), ARM_RETRY)
    with pytest.raises(PluginError, match=r"/x: the answer cannot be taken \(.*CERTIFICATE_VERIFY_FAILED.*\)$"):
        client.request("GET", "/x")


_FOREIGN = "72f988bf-86f1-41af-91ab-2d7cd011db47"
_URN = "urn:pulumi:dev::idstack::pulumi:providers:any::default"

pytestmark = pytest.mark.parametrize("plugin", [AzureNative, AzureAd])


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARM_TENANT_ID", "ARM_CLIENT_ID", "ARM_CLIENT_CERTIFICATE_PATH", "ARM_SUBSCRIPTION_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, "/nowhere/environment.json")


@pytest.mark.parametrize("inputs", [{"tenantId": _FOREIGN}, {"tenantId": Secret(_FOREIGN)}, {}])
def test_a_foreign_stack_is_refused_first(plugin: type[Provider], inputs: dict[str, object]) -> None:
    found = plugin().check_config(_URN, None, inputs)
    with pytest.raises(PluginError) as configured:
        plugin().configure(inputs)
    reasons = [failure.reason for failure in found.failures]
    assert reasons == [str(configured.value)], "CheckConfig and Configure give the same reason"
    assert "is emulated" in reasons[0]
    assert "a PULUMI_HOME of your own" in reasons[0], "it names the fix"
    assert found.failures[0].property == "", "the engine would print the value of a named property"


def test_a_foreign_tenant_in_the_environment_is_refused(
    plugin: type[Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARM_TENANT_ID", _FOREIGN)
    with pytest.raises(PluginError, match=_FOREIGN):
        plugin().configure({})


def test_without_the_record_of_the_local_cloud_nothing_is_served(
    plugin: type[Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LOCAL_ENVIRONMENT_VARIABLE)
    inputs = {"tenantId": LOCAL_TENANT_ID}
    assert LOCAL_ENVIRONMENT_VARIABLE in plugin().check_config(_URN, None, inputs).failures[0].reason
    with pytest.raises(PluginError, match=LOCAL_ENVIRONMENT_VARIABLE):
        plugin().configure(inputs)


def test_a_missing_environment_record_is_named(plugin: type[Provider]) -> None:
    with pytest.raises(PluginError, match=r"cannot read the local cloud's record.*/nowhere/environment\.json"):
        plugin().configure({"tenantId": LOCAL_TENANT_ID})


def test_an_unknown_tenant_is_left_to_configure(plugin: type[Provider]) -> None:
    assert not plugin().check_config(_URN, None, {"tenantId": UNKNOWN}).failures


def test_nothing_works_before_configure(plugin: type[Provider]) -> None:
    with pytest.raises(PluginError, match="is not configured"):
        plugin().invoke(
            "azure-native:authorization:getClientConfig"
            if plugin is AzureNative
            else "azuread:index/getClientConfig:getClientConfig",
            {},
        )


def test_an_unemulated_type_is_named_with_those_that_are(plugin: type[Provider]) -> None:
    token = f"{plugin.name}:web:Site"
    with pytest.raises(PluginError, match=f'resource type "{token}".*emulates: {plugin.name}:'):
        plugin().resource(token)
    with pytest.raises(PluginError, match=f'function "{token}".*emulates: {plugin.name}:'):
        plugin().invoke(token, {})
