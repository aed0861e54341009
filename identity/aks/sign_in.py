"""From a login to a token, with azure-identity doing the asking.

azure-identity is imported when it asks: its quarter of a second is most of what a token from the cache would cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from identity.aks.login import Login
from identity.azure import arm_environment
from identity.azure.arm_environment import ClientIdentity, Method
from identity.azure.errors import LoginRefusedError, SignInRefusedError
from identity.credentials.rfc3339 import Clock
from identity.login_kinds import LoginKind
from identity.symptoms import Family, az_login, find

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken

_OPTIONS: Final[Mapping[str, Any]] = {
    **{"connection_timeout": 15, "read_timeout": 15, "retry_total": 2},
    **{"disable_instance_discovery": True, "send_certificate_chain": True},
}
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
    client = _client(login, environ)

    def request() -> AccessToken:
        from azure.core.exceptions import AzureError

        options = {"authority": login.authority_host, **_OPTIONS}
        try:
            credential = arm_environment.credential_of(client, login.tenant_id, now, **options)
            return credential.get_token(login.scope)
        except AzureError as error:
            raise SignInRefusedError(f"{login.kind} sign-in: {explained(error)}") from None
        except SignInRefusedError as error:  # the pipeline's own issuer
            raise SignInRefusedError(f"{login.kind} sign-in: {error}") from None
        except ValueError as error:  # azure-identity's for an id or authority it cannot use
            raise LoginRefusedError(f"{login.kind} sign-in: {error}") from None

    return TokenSource(_fingerprint(client), request)


def _client(login: Login, environ: Mapping[str, str]) -> ClientIdentity:
    """Who signs in; files are read, except that a federated token is read again for each sign-in."""
    match login.kind:
        case LoginKind.CERTIFICATE:
            assert login.certificate is not None
            file = login.certificate_password_file
            return ClientIdentity(
                method=Method.CERTIFICATE,
                client_id=login.client_id,
                certificate=(str(login.certificate), arm_environment.secret_file(login.certificate)),
                password=arm_environment.secret_file(file).rstrip(b"\r\n") if file else b"",
            )
        case LoginKind.SECRET:
            assert login.client_secret_file is not None
            secret = arm_environment.secret_text(login.client_secret_file)
            return ClientIdentity(method=Method.SECRET, client_id=login.client_id, secret=secret)
        case LoginKind.WORKLOAD_IDENTITY:
            assert login.federated_token_file is not None
            assertion = partial(arm_environment.secret_text, login.federated_token_file)
            return ClientIdentity(method=Method.OIDC, client_id=login.client_id, assertion=assertion)
        case LoginKind.GITHUB:
            return _github(login, environ)
        case LoginKind.MANAGED_IDENTITY:
            return ClientIdentity(method=Method.MANAGED_IDENTITY, client_id=login.client_id)
        case LoginKind.AZURE_CLI:
            return ClientIdentity(method=Method.AZURE_CLI)
        case LoginKind.ARM:
            return _deployer(login, environ)
        case LoginKind.DEVICE_CODE:
            raise AssertionError("identity.aks.device_code signs in by device codes")


def _deployer(login: Login, environ: Mapping[str, str]) -> ClientIdentity:
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
    return deployer


def _github(login: Login, environ: Mapping[str, str]) -> ClientIdentity:
    if missing := [name for name in _GITHUB if not environ.get(name)]:
        raise LoginRefusedError(
            f"{' and '.join(missing)} not set; in the GitHub workflow give the job `permissions: id-token: write`"
        )
    from identity.azure import pipeline_token  # httpx, a tenth of a second that no other login spends

    request = pipeline_token.of({name: environ[name] for name in _GITHUB})
    return ClientIdentity(method=Method.OIDC, client_id=login.client_id, assertion=request.fetched, job=request.bearer)


def _fingerprint(client: ClientIdentity) -> str | None:
    """As in `TokenSource`. A job that may request assertions stands for them; else the current assertion counts."""
    match client.method:
        case Method.CERTIFICATE:
            digest = hashlib.sha256(b"\0".join((client.certificate[1], client.password))).hexdigest()
            return f"certificate {client.client_id} {digest}"
        case Method.SECRET:
            return f"secret {client.client_id} {_digest(client.secret)}"
        case Method.OIDC:
            return f"federated {client.client_id} {_digest(client.job or _owner(client.assertion()))}"
        case Method.MANAGED_IDENTITY:
            return f"managed identity {client.client_id}"
    return None


def _owner(assertion: str) -> str:
    """The identity of a federated token: issuer, subject and audience, or all of a token that cannot be parsed."""
    claims = claims_of(assertion)
    return " ".join(str(claims.get(name)) for name in ("iss", "sub", "aud")) if claims else assertion


def claims_of(token: str) -> Mapping[str, Any]:
    """The claims of a JWT, empty for anything else. Its signature is not checked: for messages, not for a decision."""
    import jwt  # with urllib and ssl, of which a token from the cache needs nothing

    try:
        return jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError):  # ValueError: an opaque token that is not ASCII
        return {}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def explained(error: BaseException) -> str:
    """The reason of an error and its fix, without a full stop at the end."""
    from identity.credentials.sign_in import refusal

    reason = refusal(error)
    symptom = find(reason.code or "", Family.ENTRA_ID)
    fix = symptom.login_fix.replace("`az login`", az_login(str(error))) if symptom else ""
    return str(reason).rstrip(" .") + (f". {fix}" if fix else "")
