"""An Entra ID that counts, principals that sign in to it, and tokens taken apart."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl

from cryptography import x509
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from identity.aks.sign_in import claims_of
from identity.clouds import LOCAL_TENANT_ID
from identity.credentials.certificate import IssuedCertificate
from localcloud.testing.azure import Caller, Issuers, KeyCredential, LocalAzure
from localcloud.testing.azure import entra_app as app
from tests.unit.identity.credentials.world import document

AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
TENANT = LOCAL_TENANT_ID
STRANGER = "6f2c1e7a-0000-4000-8000-00000000cccc"


class Command(Protocol):
    """Runs `idstack token` with arguments and variables."""

    def __call__(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]: ...


@dataclass
class Wire:
    """Entra ID on a socket, and how many tokens it was asked for."""

    azure: LocalAzure
    authority: str
    ca_file: Path
    requests: list[str] = field(default_factory=list)

    def verified(self, token: str) -> Caller:
        """Whom a token for AKS speaks for; raises InvalidTokenError."""
        return self.azure.tokens.verify(token, [AKS])


def wire(azure: LocalAzure, serve: Callable[[Starlette], str], ca_file: Path) -> Wire:
    """Serve Entra ID and count."""
    counted: list[str] = []
    inner = app(azure, Issuers(ca_file))

    class Counting:
        def __init__(self, within: ASGIApp) -> None:
            self._within = within

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"].endswith("/token"):
                counted.append(scope["path"])
            await self._within(scope, receive, send)

    served = serve(Starlette(routes=[Mount("/", Counting(inner))]))
    return Wire(azure, f"{served}/", ca_file, counted)


@dataclass(frozen=True)
class Principal:
    """A service principal, and where its credential document lies."""

    wire: Wire
    client_id: str
    object_id: str
    document: Path

    @property
    def arguments(self) -> list[str]:
        """Its login on the command line."""
        return ["--login", "certificate", "--certificate", str(self.document), *self.authority]

    @property
    def authority(self) -> list[str]:
        return ["--authority-host", self.wire.authority]


def principal(wire: Wire, issued: IssuedCertificate, file: Path) -> Principal:
    """An application with the certificate registered, and its credential document in a file."""
    directory = wire.azure.directory
    application = directory.create_application("deployer")
    made = directory.create_service_principal(application.app_id)
    key = KeyCredential.of(x509.load_pem_x509_certificate(issued.certificate_pem.encode()))
    directory.set_key_credentials(application.object_id, [key])
    file.write_text(document(issued, wire.authority, tenant_id=TENANT, client_id=application.app_id))
    return Principal(wire, application.app_id, made.object_id, file)


def token_of(done: subprocess.CompletedProcess[str]) -> str:
    """The token that a command printed for client-go."""
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["status"]["token"])


def object_id_of(done: subprocess.CompletedProcess[str]) -> str:
    return str(claims_of(token_of(done))["oid"])


@dataclass
class RecordingTokenEndpoint:
    """A token endpoint that gives everybody a token and keeps what it was asked."""

    forms: list[dict[str, str]] = field(default_factory=list)
    tokens: int = 0

    def app(self) -> Starlette:
        async def token(request: Request) -> Response:
            self.forms.append(dict(parse_qsl((await request.body()).decode())))
            self.tokens += 1
            body = {"token_type": "Bearer", "expires_in": 3600, "access_token": f"token-{self.tokens}"}
            return JSONResponse(body)

        async def metadata(request: Request) -> Response:
            root = f"https://{request.headers['host']}/{request.path_params['tenant']}"
            return JSONResponse(metadata_of(root))

        return Starlette(
            routes=[
                Route("/{tenant}/v2.0/.well-known/openid-configuration", metadata),
                Route("/{tenant}/oauth2/v2.0/token", token, methods=["POST"]),
            ]
        )


def metadata_of(root: str) -> dict[str, Any]:
    """The OpenID configuration of a tenant."""
    return {
        "issuer": f"{root}/v2.0",
        "authorization_endpoint": f"{root}/oauth2/v2.0/authorize",
        "token_endpoint": f"{root}/oauth2/v2.0/token",
        "device_authorization_endpoint": f"{root}/oauth2/v2.0/devicecode",
    }
