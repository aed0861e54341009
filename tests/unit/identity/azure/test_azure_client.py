"""The deployer's requests to ARM and Graph: what is repeated, and how a failure is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from azure.core.credentials import AccessToken, TokenCredential
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
from azure.core.pipeline.transport import RequestsTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.clouds import CLOUDS, Cloud
from localcloud.testing.arm import GROUP, ArmWorld
from localcloud.testing.faults import HeldAnswer, HeldDelivery
from localcloud.testing.hosts import Certificates, Serve
from tests.unit.azure_world import IssuedTokens

Connect = Callable[..., AzureClient]


@pytest.fixture
def connect(world: ArmWorld, cloud: Cloud, certificates: Certificates) -> Connect:
    """Connects the deployer to a cloud, of which some endpoints are a test's own."""

    def connected(**endpoints: str) -> AzureClient:
        issued = IssuedTokens(world, world.deployer)
        return AzureClient(replace(cloud, **endpoints), issued, str(certificates.ca_file))

    return connected


class RefusedCredential(TokenCredential):
    """Somebody whose sign-in fails."""

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        raise ClientAuthenticationError("AADSTS700027: the certificate is not registered")


def test_a_sign_in_that_fails_is_reported_with_its_reason(cloud: Cloud, certificates: Certificates) -> None:
    with (
        AzureClient(cloud, RefusedCredential(), str(certificates.ca_file)) as azure,
        pytest.raises(AzureRefusedError, match=r"signing in to read .*AADSTS700027"),
    ):
        azure.directory_object("/applications/x")


@pytest.mark.parametrize(("refusals", "found"), [(2, True), (6, False)])
def test_a_throttled_request_is_repeated_when_the_service_asks_for_it(
    connect: Connect, serve: Serve, monkeypatch: pytest.MonkeyPatch, refusals: int, found: bool
) -> None:
    throttled = Response("slow down", 429, headers={"Retry-After": "7"})
    answers = iter([throttled] * refusals + [JSONResponse({"id": "/x"})])

    async def answer(_: Request) -> Response:
        return next(answers)

    waits: list[float] = []
    monkeypatch.setattr(RequestsTransport, "sleep", lambda _, seconds: waits.append(seconds))
    with connect(arm_endpoint=serve(Starlette(routes=[Route("/x", answer)]))) as azure:
        if found:
            assert azure.resource("/x", "2024-11-01") == {"id": "/x"}
        else:
            with pytest.raises(AzureRefusedError, match="429 slow down"):
                azure.resource("/x", "2024-11-01")
    assert waits == [7.0] * min(refusals, 5)


def test_a_collection_is_read_to_its_last_page_and_at_arm_alone(connect: Connect, serve: Serve) -> None:
    asked: list[dict[str, str]] = []

    async def answer(request: Request) -> Response:
        asked.append(dict(request.query_params))
        if "page" in request.query_params:
            return JSONResponse({"value": [{"id": "/x/2"}]})
        # Wherever an answer sends the client, the token stays with ARM.
        return JSONResponse(
            {"value": [{"id": "/x/1"}], "nextLink": "https://elsewhere.example/x?page=%242&api-version=1"}
        )

    with connect(arm_endpoint=serve(Starlette(routes=[Route("/x", answer)]))) as azure:
        found = azure.resources("/x", "1", "name eq 'a'")
        nothing = azure.resources("/y", "1")

    assert [resource["id"] for resource in found] == ["/x/1", "/x/2"]
    assert nothing == []
    assert asked == [{"api-version": "1", "$filter": "name eq 'a'"}, {"page": "$2", "api-version": "1"}]


def test_an_action_is_repeated_as_well_and_needs_its_resource(
    connect: Connect, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([Response("slow down", 429), JSONResponse({"kubeconfigs": []}), Response("gone", 404)])
    asked: list[str] = []

    async def answer(request: Request) -> Response:
        asked.append(f"{request.url.path}?{request.url.query}")
        return next(answers)

    monkeypatch.setattr(RequestsTransport, "sleep", lambda _, seconds: None)
    with connect(arm_endpoint=serve(Starlette(routes=[Route("/x/list", answer, methods=["POST"])]))) as azure:
        assert azure.action("/x", "list", "2025-09-01", {"server-fqdn": "public"}) == {"kubeconfigs": []}
        with pytest.raises(AzureRefusedError, match="/x does not exist"):
            azure.action("/x", "list", "2025-09-01", {})
    assert asked == [
        "/x/list?api-version=2025-09-01&server-fqdn=public",
        "/x/list?api-version=2025-09-01&server-fqdn=public",
        "/x/list?api-version=2025-09-01",
    ]


def test_a_cloud_that_does_not_answer_is_reported(connect: Connect) -> None:
    with (
        connect(arm_endpoint="https://127.0.0.1:1") as azure,
        pytest.raises(AzureRefusedError, match=r"https://127.0.0.1:1/x does not answer"),
    ):
        azure.resource("/x", "2024-11-01")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda azure: azure.resource(GROUP, "2024-11-01"), f"GET https://.*{GROUP}: the answer was cut short$"),
        (
            lambda azure: azure.change_resource("PUT", GROUP, "2024-11-01", {"location": "eastus"}),
            f"PUT https://.*{GROUP}: the answer was cut short, and the request may have taken effect all the same",
        ),
    ],
)
def test_an_answer_that_is_cut_short_is_no_failed_sign_in(
    world: ArmWorld, connect: Connect, ask: Callable[[AzureClient], object], said: str
) -> None:
    world.hold(deliveries=(HeldDelivery("arm", cut=0.5),))
    with (
        connect() as azure,
        pytest.raises(AzureRefusedError, match=said),
    ):
        ask(azure)


@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_connection_that_ends_without_an_answer_is_made_anew_once(
    world: ArmWorld, connect: Connect, takes_effect: bool
) -> None:
    dropped = HeldAnswer("arm", status=None, after=takes_effect, count=1)
    with connect() as azure:
        world.hold(answers=(dropped,))
        assert azure.change_resource("PUT", GROUP, "2024-11-01", {"location": "eastus"}) is not None
        world.hold(answers=(replace(dropped, count=2),))
        with pytest.raises(AzureRefusedError, match=f"{GROUP} does not answer"):
            azure.change_resource("PUT", GROUP, "2024-11-01", {"location": "eastus"})
        assert azure.resource(GROUP, "2024-11-01") is not None


def test_a_managed_hsm_is_asked_at_its_own_address_with_its_own_token(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str, str]] = []
    scopes: list[str] = []

    class Tokens:
        def get_token(self, *asked: str, **_: object) -> AccessToken:
            scopes.extend(asked)
            return AccessToken("t", 1 << 33)

    def send(_: object, request: Any, **__: object) -> Any:
        sent.append((request.method, request.url, request.content))
        raise ServiceRequestError("nobody there")

    monkeypatch.setattr(RequestsTransport, "send", send)
    with AzureClient(CLOUDS["AzureUSGovernmentCloud"], Tokens()) as azure, pytest.raises(AzureRefusedError):
        azure.managed_hsm("hsm-etcd", "PUT", "/keys/providers/a/b", {"properties": {}})

    url = "https://hsm-etcd.managedhsm.usgovcloudapi.net/keys/providers/a/b?api-version=7.4"
    assert sent == [("PUT", url, '{"properties": {}}')]
    assert scopes == ["https://managedhsm.usgovcloudapi.net/.default"]


def test_the_blobs_below_a_prefix_are_listed_and_read(connect: Connect, cloud: Cloud, serve: Serve) -> None:
    async def answer(request: Request) -> Response:
        if request.url.path == "/state/a&b.json":
            return Response(b"content")
        if request.url.path != "/state":
            return Response(status_code=404, headers={"x-ms-error-code": "BlobNotFound"})
        asked = {"restype": "container", "comp": "list", "prefix": ".pulumi/locks/"}
        assert (dict(request.query_params), request.headers["x-ms-version"]) == (asked, "2017-11-09")
        names = "<Blob><Name>a&amp;b.json</Name></Blob><Blob><Name>c.json</Name></Blob>"
        return Response(f'<EnumerationResults ContainerName="state"><Blobs>{names}</Blobs></EnumerationResults>')

    container = f"https://account.blob.{cloud.storage_suffix}/state"
    with connect(blob_endpoint=serve(Starlette(routes=[Route("/{path:path}", answer)]))) as azure:
        assert azure.blob_names(container, ".pulumi/locks/") == ["a&b.json", "c.json"]
        assert azure.blob(f"{container}/a&b.json") == b"content"
        with pytest.raises(AzureRefusedError, match="404 BlobNotFound"):
            azure.blob(f"{container}/c.json")


def test_a_next_page_is_read_by_the_address_that_the_vault_gives(world: ArmWorld, connect: Connect) -> None:
    """It has the vault's port."""
    world.create_vault()
    made = {world.vault("PUT", "/secrets/one", {"value": "v"}).json()["id"] for _ in range(27)}

    with connect() as azure:
        first = azure.vault("kv-idstack-local", "GET", "/secrets/one/versions")
        assert first is not None
        second = azure.vault("kv-idstack-local", "GET", first["nextLink"])

    assert second is not None
    assert second["nextLink"] is None
    assert {version["id"] for version in first["value"] + second["value"]} == made


@pytest.mark.parametrize("name", ["evil.example?x=", "evil.example/", "evil.example#", "me@evil", "kv\n", "..", ""])
def test_no_vaults_name_sends_a_token_to_another_host(name: str) -> None:
    with AzureClient(CLOUDS["AzurePublicCloud"], RefusedCredential()) as azure:
        for asked in (azure.vault, azure.managed_hsm):
            with pytest.raises(AzureRefusedError, match="is not a vault name: 3-24 letters, digits and hyphens"):
                asked(name, "GET", "/secrets/x")
