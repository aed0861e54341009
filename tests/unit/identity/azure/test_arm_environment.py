"""Who the deployer is: what the provider plugins take out of the same variables."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

import httpx
import pytest
from azure.core.credentials import TokenCredential
from azure.identity import (
    AzureCliCredential,
    CertificateCredential,
    ClientAssertionCredential,
    ClientSecretCredential,
    ManagedIdentityCredential,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from identity.aks.login import without_foreign_variables
from identity.azure import arm_environment, pipeline_token
from identity.azure.arm_environment import (
    AZURE_NATIVE_VARIABLES,
    METHODS,
    Method,
    credential,
    deployer,
    require_azure_native,
)
from identity.azure.errors import LoginRefusedError, SignInRefusedError
from identity.azure.pipeline_token import PipelineToken
from identity.credentials.certificate import issue
from identity.login_kinds import LoginKind
from localcloud.testing.hosts import Serve
from localcloud.testing.running import clock
from tests.unit import cases
from tests.unit.identity.credentials.world import document

TENANT = "10ca1000-0000-4000-8000-000000000001"
CLIENT = {"ARM_CLIENT_ID": "5b2c7e0e-0000-4000-8000-000000000001"}
OTHER = "5b2c7e0e-0000-4000-8000-000000000002"
TOKEN = {"ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN": "t"}
GITHUB = {"ACTIONS_ID_TOKEN_REQUEST_URL": "https://g.example", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x"}
DEVOPS = {"SYSTEM_OIDCREQUESTURI": "https://d.example", "SYSTEM_ACCESSTOKEN": "x"}


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key with its certificate, PEM."""
    issued = issue("deployer", not_before=clock.now(), lifetime=timedelta(days=1))
    file = tmp_path / "deployer.pem"
    file.write_text(issued.private_key_pem + issued.certificate_pem)
    return file


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, AzureCliCredential),
        ({"ARM_USE_CLI": "true", "ARM_TENANT_ID": TENANT, **GITHUB}, AzureCliCredential),
        ({"ARM_CLIENT_SECRET": "s", **CLIENT}, ClientSecretCredential),
        ({"ARM_CLIENT_SECRET": "0", **CLIENT}, ClientSecretCredential),
        ({**TOKEN, "ARM_USE_MSI": "true", **CLIENT}, ClientAssertionCredential),
        ({**TOKEN, "ARM_CLIENT_SECRET": "s", **CLIENT}, ClientSecretCredential),
        ({"ARM_USE_OIDC": "false", "ARM_CLIENT_SECRET": "s", **CLIENT}, ClientSecretCredential),
        ({"ARM_USE_OIDC": "true", **GITHUB, **CLIENT}, ClientAssertionCredential),
        ({"ARM_USE_MSI": "true"}, ManagedIdentityCredential),
        ({"ARM_USE_MSI": "true", **CLIENT}, ManagedIdentityCredential),
    ],
    ids=str,
)
def test_the_variables_decide(environ: Mapping[str, str], expected: type[TokenCredential]) -> None:
    assert isinstance(credential(TENANT, environ), expected)


def test_a_certificate_goes_before_a_secret(certificate: Path) -> None:
    environ = {"ARM_CLIENT_CERTIFICATE_PATH": str(certificate), "ARM_CLIENT_SECRET": "s", **CLIENT}
    assert isinstance(credential(TENANT, environ, authority="https://login.microsoftonline.us/"), CertificateCredential)


# Rows: the variable, its value, and the way of azure-native, azuread and azurerm, if it is set beside ARM_CLIENT_ID.
NATIVE, AZUREAD = "azure-native", "azuread and azurerm"
READ: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "ARM_CLIENT_CERTIFICATE": ("certificate", frozenset({AZUREAD})),
    "ARM_CLIENT_CERTIFICATE_PATH": ("certificate", frozenset({NATIVE, AZUREAD})),
    "ARM_CLIENT_SECRET": ("secret", frozenset({NATIVE, AZUREAD})),
    "ARM_CLIENT_SECRET_FILE_PATH": ("secret", frozenset({AZUREAD})),
    "ARM_USE_OIDC": ("oidc", frozenset({NATIVE, AZUREAD})),
    "ARM_USE_AKS_WORKLOAD_IDENTITY": ("oidc", frozenset({AZUREAD})),
    "ARM_USE_MSI": ("managed-identity", frozenset({NATIVE, AZUREAD})),
}


def test_the_table_has_each_variable_that_names_a_way() -> None:
    assert {name: str(way) for name, way in METHODS.items()} == {name: way for name, (way, _) in READ.items()}
    assert {name for name, (_, readers) in READ.items() if NATIVE in readers} == AZURE_NATIVE_VARIABLES


@pytest.fixture
def given(tmp_path: Path, certificate: Path) -> Mapping[str, str]:
    """A value of each variable that names a way."""
    for name in ("secret", "token"):
        (tmp_path / name).write_text(f"{name}\n")
    return {
        "ARM_CLIENT_CERTIFICATE": base64.b64encode(certificate.read_bytes()).decode(),
        "ARM_CLIENT_CERTIFICATE_PATH": str(certificate),
        "ARM_CLIENT_SECRET": "secret",
        "ARM_CLIENT_SECRET_FILE_PATH": str(tmp_path / "secret"),
        "ARM_USE_OIDC": "true",
        "ARM_USE_AKS_WORKLOAD_IDENTITY": "true",
        "ARM_USE_MSI": "true",
    }


@pytest.mark.parametrize("first", READ)
@pytest.mark.parametrize("second", READ)
def test_two_ways_are_taken_only_if_all_providers_take_the_same(
    first: str, second: str, given: Mapping[str, str], tmp_path: Path
) -> None:
    beside = {"AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token"), **GITHUB}
    environ = {first: given[first], second: given[second], **CLIENT, **beside}
    order = [str(method) for method in Method]
    taken = {
        provider: min(
            (READ[name][0] for name in (first, second) if provider in READ[name][1]), key=order.index, default=""
        )
        for provider in (NATIVE, AZUREAD)
    }
    if {first, second} == {"ARM_CLIENT_CERTIFICATE", "ARM_CLIENT_CERTIFICATE_PATH"}:
        taken[NATIVE] = "which of the two?"
    if taken[NATIVE] in ("", taken[AZUREAD]):
        assert deployer(environ).method == taken[AZUREAD]
        assert not isinstance(credential(TENANT, environ), AzureCliCredential)
    else:
        with pytest.raises(LoginRefusedError, match=f"(?s)(?=.*{first})(?=.*{second})"):
            deployer(environ)


@pytest.mark.parametrize(
    ("named", "environ"),
    [
        pytest.param(named, environ, id=f"{named} {environ}")
        for named, environs in cases.read(Path(__file__).with_name("refused-variables.yaml"), globals()).items()
        for environ in environs
    ],
)
def test_what_would_make_somebody_else_of_a_pipeline_is_refused_by_name(named: str, environ: Mapping[str, str]) -> None:
    with pytest.raises(LoginRefusedError, match=named):
        deployer(environ)


@pytest.mark.parametrize("name", READ)
def test_a_stack_takes_no_way_that_azure_native_does_not_read(
    name: str, given: Mapping[str, str], tmp_path: Path
) -> None:
    beside = {"AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token"), **GITHUB, **CLIENT}
    environ = {name: given[name], **beside}
    if name in AZURE_NATIVE_VARIABLES:
        require_azure_native(environ)
    else:
        with pytest.raises(LoginRefusedError, match=f"^{name} is set, which azure-native does not read"):
            require_azure_native(environ)
    require_azure_native({})


def test_an_empty_variable_is_none() -> None:
    assert deployer(dict.fromkeys(READ, "") | {"ARM_CLIENT_ID": "", "ARM_CLIENT_CERTIFICATE_PASSWORD": ""}).method == (
        Method.AZURE_CLI
    )


def test_files_have_what_the_variables_have_or_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s\n")
    (tmp_path / "id").write_text(CLIENT["ARM_CLIENT_ID"].upper())
    environ = {
        **CLIENT,
        "ARM_CLIENT_SECRET": "s",
        "ARM_CLIENT_SECRET_FILE_PATH": str(tmp_path / "secret"),
        "ARM_CLIENT_ID_FILE_PATH": str(tmp_path / "id"),
    }
    assert deployer(environ).secret == "s"
    with pytest.raises(LoginRefusedError, match="ARM_CLIENT_SECRET and ARM_CLIENT_SECRET_FILE_PATH differ"):
        deployer({**environ, "ARM_CLIENT_SECRET": "other"})


def test_a_pod_with_workload_identity_is_who_its_service_account_is(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("projected\n")
    environ = {
        "ARM_USE_AKS_WORKLOAD_IDENTITY": "true",
        "AZURE_CLIENT_ID": OTHER,
        "AZURE_TENANT_ID": TENANT,
        "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token"),
        "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.us/",
    }
    found = deployer(environ)
    assert (found.method, found.client_id, found.tenant_id) == (Method.OIDC, OTHER, TENANT)
    assert found.assertion() == "projected"
    assert environ.keys() - without_foreign_variables(environ, LoginKind.ARM).keys() == {"AZURE_AUTHORITY_HOST"}
    off = {**environ, "ARM_USE_AKS_WORKLOAD_IDENTITY": "false"}
    assert without_foreign_variables(off, LoginKind.ARM).keys() == {"ARM_USE_AKS_WORKLOAD_IDENTITY"}


@pytest.mark.parametrize(
    ("encoded", "name", "command"),
    [
        ("s3cret".encode("utf-8-sig"), "UTF-8 with a byte-order mark", "sed"),
        ("s3cret".encode("utf-16"), "UTF-16", "iconv"),
        (codecs.BOM_UTF16_BE + "s3cret".encode("utf-16-be"), "UTF-16", "iconv"),
    ],
    ids=["utf-8", "utf-16", "utf-16-be"],
)
def test_a_file_of_windows_is_named_with_the_command_that_helps(
    encoded: bytes, name: str, command: str, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(encoded)
    with pytest.raises(LoginRefusedError, match=f"is in {name};.*`{command} .*{file}`") as refused:
        deployer({**CLIENT, "ARM_CLIENT_SECRET_FILE_PATH": str(file)})
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "is empty"), (b" \n", "is empty"), (b"\xe9", "is not UTF-8 text")]
)
def test_a_file_without_a_text_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(LoginRefusedError, match=reason):
        arm_environment.secret_text(file)


def test_a_pipelines_token_comes_from_a_variable_or_afresh_from_a_file(tmp_path: Path) -> None:
    assert deployer({**TOKEN, **CLIENT}).assertion() == "t"
    file = tmp_path / "token"
    file.write_text("first")
    read = deployer({"ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN_FILE_PATH": str(file), **CLIENT}).assertion
    for token in ("first", "second"):
        file.write_text(f"{token}\n")
        assert read() == token


class Endpoint:
    """A pipeline's endpoint: what is answered, and what was asked."""

    def __init__(self, *answers: Response) -> None:
        self._answers: Iterator[Response] = iter(answers)
        self.asked: list[tuple[str, dict[str, str], str]] = []

    async def _answer(self, request: Request) -> Response:
        self.asked.append((request.method, dict(request.query_params), request.headers["authorization"]))
        return next(self._answers)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/token", self._answer, methods=["GET", "POST"])])


GITHUB_ASKS = ("GET", {"api-version": "2.0", "audience": "api://AzureADTokenExchange"}, "Bearer x")
DEVOPS_ASKS = ("POST", {"api-version": "7.1", "serviceConnectionId": "connection"}, "Bearer x")


@pytest.mark.parametrize(
    ("environ", "url", "query", "member", "asked"),
    [
        (GITHUB, "ACTIONS_ID_TOKEN_REQUEST_URL", "?api-version=2.0", "value", GITHUB_ASKS),
        (
            {**DEVOPS, "ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID": "connection"},
            "SYSTEM_OIDCREQUESTURI",
            "",
            "oidcToken",
            DEVOPS_ASKS,
        ),
    ],
    ids=["github", "azure devops"],
)
def test_a_pipelines_endpoint_is_asked_as_it_documents(
    environ: Mapping[str, str], url: str, query: str, member: str, asked: object, serve_plain: Serve
) -> None:
    endpoint = Endpoint(JSONResponse({member: "t"}))
    served = {**environ, url: f"{serve_plain(endpoint.app())}/token{query}"}

    assert deployer({"ARM_USE_OIDC": "true", **served, **CLIENT}).assertion() == "t"
    assert endpoint.asked == [asked]


def asking(url: str, pauses: list[object] | None = None) -> PipelineToken:
    return PipelineToken(httpx.URL(url), "secret-bearer", None, sleep=(pauses if pauses is not None else []).append)


def test_an_endpoint_that_is_busy_for_a_moment_is_asked_again(serve_plain: Serve) -> None:
    busy = [PlainTextResponse("", status) for status in (503, 429, 500)]
    endpoint, pauses = Endpoint(*busy, JSONResponse({"value": "t"})), list[object]()

    assert asking(f"{serve_plain(endpoint.app())}/token", pauses).fetched() == "t"

    assert len(endpoint.asked) == 4
    assert pauses == [0.5, 1.0, 2.0]
    with pytest.raises(SignInRefusedError, match="4 times"):
        asking("http://127.0.0.1:1/token", pauses).fetched()
    assert len(pauses) == 6
    with pytest.raises(LoginRefusedError, match='ACTIONS_ID_TOKEN_REQUEST_URL is "localhost/x"; accepted is a URL'):
        pipeline_token.of({**GITHUB, "ACTIONS_ID_TOKEN_REQUEST_URL": "localhost/x"})


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([PlainTextResponse("", 503)] * 4, "it answers 503, 4 times"),
        ([PlainTextResponse("no permission", 403)], "it answers 403: no permission"),
        ([PlainTextResponse("<html/>")], "its answer has no token"),
        ([JSONResponse({})], "its answer has no token"),
        ([JSONResponse(["t"])], "its answer has no token"),
        ([JSONResponse({"value": ""})], "its answer has no token"),
    ],
    ids=["down", "forbidden", "html", "no member", "a list", "an empty token"],
)
def test_an_endpoint_that_gives_no_token_is_one_sentence(
    answers: list[Response], reason: str, serve_plain: Serve
) -> None:
    with pytest.raises(SignInRefusedError, match=reason) as refused:
        asking(f"{serve_plain(Endpoint(*answers).app())}/token").fetched()
    assert "secret-bearer" not in str(refused.value)


@pytest.mark.parametrize(("own", "where"), [("tenant_id", "idstack:tenantId"), ("client_id", "ARM_CLIENT_ID")])
def test_ids_that_contradict_a_document_are_named_as_a_stack_has_them(own: str, where: str, tmp_path: Path) -> None:
    now = clock.now()
    file = tmp_path / "document.json"
    ids = {"tenant_id": TENANT, "client_id": CLIENT["ARM_CLIENT_ID"], own: OTHER}
    file.write_text(document(issue("deployer", not_before=now, lifetime=timedelta(days=1)), **ids))

    with pytest.raises(LoginRefusedError, match=rf"{OTHER}, but .*\(of a stack's deployer, {where}\); correct one"):
        credential(TENANT, {**CLIENT, "ARM_CLIENT_CERTIFICATE_PATH": str(file)})
