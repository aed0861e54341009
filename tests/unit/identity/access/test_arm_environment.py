"""Who the deployer is: what the provider plugins take out of the same variables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

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
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.access.arm_environment import assertion, credential
from identity.credentials.certificate import issue
from localcloud.core import clock
from tests.unit.hosts import Serve

TENANT = "10ca1000-0000-4000-8000-000000000001"
CLIENT = {"ARM_CLIENT_ID": "5b2c7e0e-0000-4000-8000-000000000001"}


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
        ({"ARM_CLIENT_SECRET": "s", **CLIENT}, ClientSecretCredential),
        ({"ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN": "t", "ARM_USE_MSI": "1", **CLIENT}, ClientAssertionCredential),
        (
            {"ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN": "t", "ARM_CLIENT_SECRET": "s", **CLIENT},
            ClientSecretCredential,
        ),
        ({"ARM_USE_OIDC": "false", "ARM_CLIENT_SECRET": "s", **CLIENT}, ClientSecretCredential),
        ({"ARM_USE_MSI": "1"}, ManagedIdentityCredential),
    ],
)
def test_the_variables_decide(environ: Mapping[str, str], expected: type[TokenCredential]) -> None:
    assert isinstance(credential(TENANT, environ), expected)


def test_a_certificate_goes_before_a_secret(certificate: Path) -> None:
    environ = {"ARM_CLIENT_CERTIFICATE_PATH": str(certificate), "ARM_CLIENT_SECRET": "s", **CLIENT}
    assert isinstance(credential(TENANT, environ, authority="https://login.microsoftonline.us/"), CertificateCredential)


def test_a_pipelines_token_comes_from_a_variable_or_afresh_from_a_file(tmp_path: Path) -> None:
    assert assertion({"ARM_OIDC_TOKEN": "token"})() == "token"
    file = tmp_path / "token"
    read = assertion({"ARM_OIDC_TOKEN_FILE_PATH": str(file)})
    for each in ("first", "second"):
        file.write_text(f"{each}\n")
        assert read() == each


def test_a_pipelines_token_is_requested_where_github_offers_it(serve_plain: Serve) -> None:
    async def issued(request: Request) -> Response:
        asked = (
            request.headers["authorization"],
            request.query_params["api-version"],
            request.query_params["audience"],
        )
        return JSONResponse({"value": " ".join(asked)})

    url = f"{serve_plain(Starlette(routes=[Route('/token', issued)]))}/token?api-version=2.0"
    environ = {"ACTIONS_ID_TOKEN_REQUEST_URL": url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner"}
    assert assertion(environ)() == "Bearer runner 2.0 api://AzureADTokenExchange"
