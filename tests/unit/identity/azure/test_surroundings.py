"""What the way to Azure takes from its surroundings: a proxy and authorities, but no password of ~/.netrc."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.aks import tokens
from identity.aks.login import Login
from identity.aks.tokens import TokenCache
from identity.azure.arm_environment import credential
from identity.azure.client import AzureClient
from identity.azure.errors import AccessError
from identity.clouds import CLOUDS
from identity.credentials import sign_in
from identity.credentials.probe.credential_source import FederatedToken
from identity.credentials.probe.report import ProofRequest
from identity.credentials.rfc3339 import utc_now
from identity.login_kinds import LoginKind
from localcloud.testing.hosts import Certificates, Serve
from tests.apiserver.recording_server import proxy_to
from tests.unit.identity.aks.world import metadata_of
from tests.unit.identity.credentials.world import ARM_SCOPE, CLIENT, TENANT, certificate

GRANTED = {"access_token": "ours", "expires_in": 3600, "token_type": "Bearer", "value": "x", "device_code": "x"}
Served = tuple[int, set[str | None]]


def ways(url: str) -> Iterator[Callable[[], object]]:
    job = {"ACTIONS_ID_TOKEN_REQUEST_URL": url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "ours"}
    variables = {"ARM_USE_OIDC": "true", "ARM_CLIENT_ID": CLIENT, **job}
    deployer = credential(TENANT, variables, authority=url, disable_instance_discovery=True)
    cloud = replace(CLOUDS["AzurePublicCloud"], arm_endpoint=url)
    yield lambda: AzureClient(cloud, deployer).public_document(url)
    yield lambda: AzureClient(cloud, deployer).resource("/x", "2024-11-01")
    pem = f"{(issued := certificate()).private_key_pem}{issued.certificate_pem}".encode()
    yield lambda: sign_in.sign_in(url, TENANT, CLIENT, pem, ARM_SCOPE)
    login = Login(kind=LoginKind.DEVICE_CODE, tenant_id=TENANT, authority_host=f"{url}/")
    yield lambda: tokens.token(login, TokenCache(Path.home() / "cache"), {}, show=str)
    yield lambda: credential(TENANT, {"ARM_USE_MSI": "true"}).get_token(ARM_SCOPE)
    owner = {"authority_host": url, "tenant_id": TENANT, "client_id": CLIENT, "assertion": "x"}
    federated = FederatedToken(not_before=utc_now(), expires=utc_now(), thumbprint=None, **owner)
    call = ProofRequest(method="GET", url=url, scope=ARM_SCOPE, headers={})
    yield lambda: call.make(federated.sign_in(ARM_SCOPE).token).ok or pytest.fail("the proof call got no answer")


@pytest.fixture
def served(serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Served:
    """The port of Entra ID, ARM, IMDS and GitHub in one, and what somebody presents who has a default in ~/.netrc."""
    presented: set[str | None] = set()

    async def answer(request: Request) -> Response:
        presented.add(request.headers.get("Authorization"))
        return JSONResponse(GRANTED | metadata_of(f"https://{request.headers['host']}/{TENANT}") | {"message": ""})

    (tmp_path / ".netrc").write_text("default login alice password hunter2\n")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC", "https_proxy", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_file))
    url = serve(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])]))
    return int(url.rpartition(":")[2]), presented


@pytest.mark.parametrize("proxied", [True, False])
def test_nobody_gets_a_password_of_netrc(proxied: bool, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    port, presented = served
    proxy = proxy_to(port)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    url = f"https://localhost:{9 if proxied else port}"  # nobody listens at port 9: the proxy leads to the server
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.server_port if proxied else 9}")
    monkeypatch.setenv("NO_PROXY", "elsewhere" if proxied else "localhost")
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", url)
    for way in ways(url):
        way()
    proxy.shutdown()
    assert presented == {None, "Bearer ours"}


@pytest.mark.parametrize("file", ["/nonexistent", __file__])
def test_a_broken_file_of_authorities_is_named(file: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", file)
    for way in islice(ways(f"https://localhost:{served[0]}"), 4):
        with pytest.raises((AccessError, AzureError), match=r"SSL_CERT_FILE|/nonexistent|no certificate or crl"):
            way()
