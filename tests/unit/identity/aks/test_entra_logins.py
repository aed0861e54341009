"""Secrets and federated tokens, which the local Entra ID verifies: azure-identity through `idstack token`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.utils import to_base64url_uint
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from localcloud.testing.azure import Application, PasswordCredential
from localcloud.testing.hosts import Serve
from localcloud.testing.running import clock
from tests.unit.identity.aks.world import TENANT, Command, Wire, object_id_of

AUDIENCE = "api://AzureADTokenExchange"
SUBJECT = "repo:contoso/identity:environment:prod"
KEY_ID = "issuer-key"


@dataclass
class Issuer:
    """An OpenID Connect issuer on this machine, as GitHub's and a cluster's are elsewhere."""

    url: str
    key: rsa.RSAPrivateKey

    def token(self, *, key: rsa.RSAPrivateKey | None = None, life: int = 600, **claims: str) -> str:
        """A token of the subject; keywords make it a wrong one."""
        now = datetime.now(UTC)
        right = {"iss": self.url, "sub": SUBJECT, "aud": AUDIENCE, "nbf": now - timedelta(minutes=15)}
        whole = {**right, "exp": now + timedelta(seconds=life), **claims}
        # GitHub's have a thumbprint, too, though no certificate is registered anywhere.
        return jwt.encode(whole, key or self.key, algorithm="RS256", headers={"kid": KEY_ID, "x5t": "dGh1bWI"})


@pytest.fixture(scope="session")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def issuer(serve: Serve, key: rsa.RSAPrivateKey) -> Issuer:
    numbers = key.public_key().public_numbers()
    known = {
        "kty": "RSA",
        "kid": KEY_ID,
        "n": to_base64url_uint(numbers.n).decode(),
        "e": to_base64url_uint(numbers.e).decode(),
    }

    async def metadata(request: Request) -> Response:
        root = f"https://{request.headers['host']}"
        return JSONResponse({"issuer": root, "jwks_uri": f"{root}/keys"})

    async def keys(_: Request) -> Response:
        return JSONResponse({"keys": [known]})

    routes = [Route("/.well-known/openid-configuration", metadata), Route("/keys", keys)]
    return Issuer(serve(Starlette(routes=routes)), key)


@dataclass(frozen=True)
class Pipeline:
    """An application of the tenant."""

    wire: Wire
    application: Application
    object_id: str

    def login(self, kind: str, *options: str) -> list[str]:
        ids = ["--tenant-id", TENANT, "--client-id", self.application.app_id]
        return ["--exec", "--login", kind, *ids, "--authority-host", self.wire.authority, *options]

    def trusts(self, issuer: str, subject: str = SUBJECT, audience: str = AUDIENCE) -> None:
        credential = {"name": "ci", "issuer": issuer, "subject": subject, "audiences": [audience]}
        self.wire.azure.directory.update(replace(self.application, federated=(credential,)))


@pytest.fixture
def pipeline(entra: Wire) -> Pipeline:
    application = entra.azure.directory.create_application("pipeline")
    principal = entra.azure.directory.create_service_principal(application.app_id)
    return Pipeline(entra, application, principal.object_id)


def refused(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The message about a sign-in that Entra ID refused with this code."""
    assert (done.returncode, done.stdout) == (1, "")
    assert f"AADSTS{code}" in done.stderr
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def test_a_client_secret_signs_in_and_a_wrong_or_expired_one_does_not(
    command: Command, pipeline: Pipeline, tmp_path: Path
) -> None:
    good, value = PasswordCredential.issue("ci", clock.now() + timedelta(days=1))
    over, old = PasswordCredential.issue("old", clock.now() - timedelta(days=1))
    pipeline.wire.azure.directory.update(replace(pipeline.application, passwords=(good, over)))
    file = tmp_path / "secret"

    def sign_in(text: str) -> subprocess.CompletedProcess[str]:
        file.write_text(text)
        return command(*pipeline.login("secret", "--client-secret-file", str(file)))

    assert object_id_of(sign_in(f"{value}\n")) == pipeline.object_id
    wrong = refused(sign_in("wrong"), 7000215)
    expired = refused(sign_in(old), 7000222)
    assert "configure the value of the secret, not its id" in wrong
    assert "the secret has expired: make a new one" in expired
    assert old not in expired
    variables: dict[str, Any] = {"ARM_CLIENT_ID": pipeline.application.app_id, "ARM_CLIENT_SECRET": "wrong"}
    login = ["--exec", "--login", "arm", "--tenant-id", TENANT, "--authority-host", pipeline.wire.authority]
    refused(command(*login, **variables), 7000215)


@pytest.fixture
def by_file(command: Command, pipeline: Pipeline, tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Signs the pipeline in with a federated token in a file."""

    def sign_in(token: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "federated-token"
        file.write_text(token)
        return command(*pipeline.login("workload-identity", "--federated-token-file", str(file)))

    return sign_in


ByFile = Callable[[str], subprocess.CompletedProcess[str]]


def test_a_federated_token_in_a_file_signs_in(by_file: ByFile, pipeline: Pipeline, issuer: Issuer) -> None:
    pipeline.trusts(issuer.url)
    assert object_id_of(by_file(issuer.token())) == pipeline.object_id


def test_githubs_endpoint_is_asked_and_its_token_signs_in(
    command: Command, pipeline: Pipeline, issuer: Issuer, serve_plain: Serve
) -> None:
    async def runner(request: Request) -> Response:
        assert request.headers["authorization"] == "Bearer of-the-job"
        return JSONResponse({"value": issuer.token(aud=request.query_params["audience"])})

    url = serve_plain(Starlette(routes=[Route("/token", runner)]))
    pipeline.trusts(issuer.url)
    done = command(
        *pipeline.login("github"),
        ACTIONS_ID_TOKEN_REQUEST_URL=f"{url}/token?api-version=2.0",
        ACTIONS_ID_TOKEN_REQUEST_TOKEN="of-the-job",
    )

    assert object_id_of(done) == pipeline.object_id


def test_a_managed_identity_signs_in_by_its_federated_credential_in_arm(
    command: Command, entra: Wire, issuer: Issuer, tmp_path: Path
) -> None:
    identity = "/subscriptions/s/resourcegroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/ci"
    principal = entra.azure.directory.create_managed_identity(identity, "ci")
    kind = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    credential = {
        "id": f"{identity}/federatedIdentityCredentials/one",
        "type": kind,
        "properties": {"issuer": issuer.url, "subject": SUBJECT, "audiences": [AUDIENCE]},
    }
    entra.azure.store.put("arm", str(credential["id"]).lower(), credential)
    (tmp_path / "token").write_text(issuer.token())
    login = ["--login", "workload-identity", "--tenant-id", TENANT, "--client-id", principal.app_id]
    file = ["--federated-token-file", str(tmp_path / "token"), "--authority-host", entra.authority]

    assert object_id_of(command("--exec", *login, *file)) == principal.object_id


@pytest.mark.parametrize(
    ("trusted", "code", "fix"),
    [
        ({"issuer": "https://token.actions.githubusercontent.com"}, 700211, "token's issuer"),
        ({"subject": "system:serviceaccount:another:one"}, 700213, "token's subject"),
        ({"subject": SUBJECT.upper()}, 7002138, "letter case of the federated credential's subject"),
        ({"audience": "api://another"}, 700212, "audience of the federated credential"),
    ],
)
def test_an_unexpected_federated_token_is_refused_with_what_to_register(
    by_file: ByFile, pipeline: Pipeline, issuer: Issuer, trusted: dict[str, str], code: int, fix: str
) -> None:
    pipeline.trusts(**{"issuer": issuer.url, **trusted})
    token = issuer.token()
    message = refused(by_file(token), code)
    assert fix in message
    assert token not in message


def test_a_federated_token_of_another_key_or_out_of_its_time_is_refused(
    by_file: ByFile, pipeline: Pipeline, issuer: Issuer
) -> None:
    pipeline.trusts(issuer.url)
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    message = refused(by_file(issuer.token(key=stranger)), 50013)
    assert "with a key that its issuer publishes" in message
    assert "have it renewed" in refused(by_file(issuer.token(life=-300)), 700024)


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "https://token.actions.githubusercontent.com"])
def test_an_issuer_that_is_not_on_this_machine_is_not_asked(
    by_file: ByFile, pipeline: Pipeline, key: rsa.RSAPrivateKey, url: str
) -> None:
    pipeline.trusts(url)
    refused(by_file(Issuer(url, key).token()), 90061)
