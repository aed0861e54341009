"""From a login to a token, with azure-identity doing the asking.

azure-identity is imported when it asks: its quarter of a second is most of what a token from the cache would cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from identity.access import arm_environment, secret_files
from identity.access.arm_environment import Method
from identity.access.claims import claims_of
from identity.access.errors import LoginRefusedError, SignInRefusedError
from identity.access.login import Login
from identity.credentials.clock import Clock
from identity.credentials.symptom import Family
from identity.credentials.symptoms import find
from identity.login_kinds import LoginKind

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential

# Seconds. `az` starts slowly, and waits for other `az` processes.
_CLI_TIMEOUT: Final = 60
_TIMEOUTS: Final = {"connection_timeout": 15, "read_timeout": 15, "retry_total": 2}
_GITHUB: Final = ("ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")


@dataclass(frozen=True)
class TokenSource:
    """A credential that can request tokens.

    `fingerprint` identifies it in the cache's key: a digest of its content. It is None for the Azure CLI, which keeps
    tokens itself and may change their identity: those are requested each time.
    """

    fingerprint: str | None
    request: Callable[[], AccessToken]


def token_source(login: Login, environ: Mapping[str, str], now: Clock) -> TokenSource:
    """The credential that a login names; raises LoginRefusedError.

    Its `request` raises SignInRefusedError, and LoginRefusedError for a certificate that cannot be used.
    """
    match login.kind:
        case LoginKind.CERTIFICATE:
            assert login.certificate is not None
            file = login.certificate_password_file
            password = secret_files.content(file).rstrip(b"\r\n") if file else b""
            file_content = (str(login.certificate), secret_files.content(login.certificate))
            return _certificate(login, file_content, password, login.client_id, now)
        case LoginKind.SECRET:
            assert login.client_secret_file is not None
            return _secret(login, login.client_id, secret_files.text(login.client_secret_file))
        case LoginKind.WORKLOAD_IDENTITY:
            assert login.federated_token_file is not None
            return _federated(login, login.client_id, partial(secret_files.text, login.federated_token_file), "")
        case LoginKind.GITHUB:
            return _github(login, environ)
        case LoginKind.MANAGED_IDENTITY:
            return _managed_identity(login, login.client_id)
        case LoginKind.AZURE_CLI:
            return _azure_cli(login)
        case LoginKind.ARM:
            return _arm(login, environ, now)
        case LoginKind.DEVICE_CODE:
            raise AssertionError("identity.access.device_code signs in by device codes")


def _arm(login: Login, environ: Mapping[str, str], now: Clock) -> TokenSource:
    """The deployer of the ARM_* variables, which must have the login's client id if there is one."""
    deployer = arm_environment.deployer(environ)
    if login.client_id is not None and (deployer.client_id or "").lower() != login.client_id.lower():
        raise LoginRefusedError(
            f"ARM_CLIENT_ID is {deployer.client_id or 'not set'}, but the login is of {login.client_id}; set the ARM_* "
            "variables of that one, or leave out --client-id to sign in as the client that they name"
        )
    if deployer.tenant_id and login.tenant_id and deployer.tenant_id.lower() != login.tenant_id.lower():
        raise LoginRefusedError(
            f"ARM_TENANT_ID is {deployer.tenant_id}, but this login is in {login.tenant_id}; correct one of them"
        )
    match deployer.method:
        case Method.CERTIFICATE:
            return _certificate(
                login, deployer.certificate, (deployer.password or "").encode(), deployer.client_id, now
            )
        case Method.SECRET:
            return _secret(login, deployer.client_id, deployer.secret)
        case Method.OIDC:
            return _federated(login, deployer.client_id, deployer.assertion, deployer.job)
        case Method.MANAGED_IDENTITY:
            return _managed_identity(login, deployer.client_id)
    return _azure_cli(login)


def _certificate(
    login: Login, file: tuple[str, bytes], password: bytes, client_id: str | None, now: Clock
) -> TokenSource:
    """`file` has a name for messages, and the content, which is read when it signs in."""

    def connect() -> TokenCredential:
        from identity.access import certificate_file
        from identity.credentials.sign_in import client

        name, data = file
        parsed = certificate_file.parse(name, data, password or None, now())
        tenant = _agreed("tenant", name, login.tenant_id, parsed.tenant_id)
        return client(
            login.authority_host, tenant, _agreed("client", name, client_id, parsed.client_id), parsed.pem, **_TIMEOUTS
        )

    digest = hashlib.sha256(b"\0".join((file[1], password))).hexdigest()
    return _asking(login, f"certificate {client_id} {digest}", connect)


def _agreed(what: str, path: str, configured: str | None, in_file: str | None) -> str:
    """The id in the login or the file; raises LoginRefusedError if they differ or neither has one."""
    if configured is not None and in_file is not None and configured.lower() != in_file.lower():
        raise LoginRefusedError(
            f"{path} is of the {what} {in_file}, but --{what}-id is {configured}; correct one of them"
        )
    if (agreed := configured or in_file) is None:
        raise LoginRefusedError(f"--{what}-id is missing: {path} is not a credential document, which would have it")
    return agreed


def _secret(login: Login, client_id: str | None, secret: str) -> TokenSource:
    def connect() -> TokenCredential:
        from azure.identity import ClientSecretCredential

        return ClientSecretCredential(login.tenant_id or "", client_id or "", secret, **_options(login))

    return _asking(login, f"secret {client_id} {_digest(secret)}", connect)


def _github(login: Login, environ: Mapping[str, str]) -> TokenSource:
    if missing := [name for name in _GITHUB if not environ.get(name)]:
        raise LoginRefusedError(
            f"{' and '.join(missing)} not set; in the GitHub workflow give the job `permissions: id-token: write`"
        )
    from identity.access import pipeline_token  # httpx, a tenth of a second that no other login spends

    request = pipeline_token.of({name: environ[name] for name in _GITHUB})
    return _federated(login, login.client_id, request.fetched, request.bearer)


def _federated(login: Login, client_id: str | None, assertion: Callable[[], str], secret: str) -> TokenSource:
    """`secret` identifies the job that may request assertions; without one the current assertion does."""
    owner = secret or _owner(assertion())

    def connect() -> TokenCredential:
        from azure.identity import ClientAssertionCredential

        return ClientAssertionCredential(login.tenant_id or "", client_id or "", assertion, **_options(login))

    return _asking(login, f"federated {client_id} {_digest(owner)}", connect)


def _owner(assertion: str) -> str:
    """The identity of a federated token: issuer, subject and audience, or all of a token that cannot be parsed."""
    claims = claims_of(assertion)
    return " ".join(str(claims.get(name)) for name in ("iss", "sub", "aud")) if claims else assertion


def _managed_identity(login: Login, client_id: str | None) -> TokenSource:
    def connect() -> TokenCredential:
        from azure.identity import ManagedIdentityCredential

        return ManagedIdentityCredential(client_id=client_id)

    return _asking(login, f"managed identity {client_id}", connect)


def _azure_cli(login: Login) -> TokenSource:
    def connect() -> TokenCredential:
        from azure.identity import AzureCliCredential

        return AzureCliCredential(tenant_id=login.tenant_id or "", process_timeout=_CLI_TIMEOUT)

    return _asking(login, None, connect)


def _asking(login: Login, fingerprint: str | None, connect: Callable[[], TokenCredential]) -> TokenSource:
    def request() -> AccessToken:
        from azure.core.exceptions import AzureError

        try:
            return connect().get_token(login.scope)
        except AzureError as error:
            raise SignInRefusedError(f"{login.kind} sign-in: {explained(error)}") from None
        except SignInRefusedError as error:  # the pipeline's own issuer
            raise SignInRefusedError(f"{login.kind} sign-in: {error}") from None
        except ValueError as error:  # azure-identity's for an id or authority it cannot use
            raise LoginRefusedError(f"{login.kind} sign-in: {error}") from None

    return TokenSource(fingerprint, request)


def _options(login: Login) -> dict[str, Any]:
    from identity.credentials.sign_in import ca_bundle

    return {
        "authority": login.authority_host,
        "disable_instance_discovery": True,
        "connection_verify": ca_bundle(),
        **_TIMEOUTS,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def explained(error: BaseException) -> str:
    """The reason of an error and its fix, without a full stop at the end."""
    from identity.credentials.sign_in import refusal

    reason = refusal(error)
    symptom = find(reason.code or "", Family.ENTRA_ID)
    return str(reason).rstrip(" .") + (f". {symptom.login_fix}" if symptom else "")
