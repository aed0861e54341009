"""From a login to a token, with azure-identity doing the asking."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from azure.core.credentials import AccessToken, TokenCredential
from azure.core.exceptions import AzureError
from azure.identity import (
    AzureCliCredential,
    ClientAssertionCredential,
    ClientSecretCredential,
    ManagedIdentityCredential,
)

from identity.access import arm_environment, certificate_file
from identity.access.arm_environment import Method
from identity.access.claims import claims_of
from identity.access.errors import LoginRefused, SignInRefused
from identity.access.login import Login
from identity.credentials.sign_in import Clock, ca_bundle, client, refusal
from identity.login_kinds import LoginKind

# Seconds. `az` starts slowly, and waits for others of its kind.
_CLI_TIMEOUT: Final = 60
_TIMEOUTS: Final = {"connection_timeout": 15, "read_timeout": 15, "retry_total": 2}
_GITHUB: Final = ("ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")

# Entra's code: what to do. Codes: learn.microsoft.com/entra/identity-platform/reference-error-codes.
_FIXES: Final[Mapping[str, str]] = {
    "AADSTS90002": "correct the tenant, or the authority host if the tenant is in another cloud",
    "AADSTS700016": "correct the client id, or the tenant: the application is not in this one",
    "AADSTS7000229": "create the application's service principal in this tenant (`az ad sp create --id <client id>`)",
    "AADSTS700027": "register the certificate on the application, or sign in with the one that is registered",
    "AADSTS7000215": "put the value of the secret there, not its id",
    "AADSTS7000222": "the secret has expired: make a new one",
    "AADSTS700024": "the federated token is too old: have it renewed, and check this machine's clock",
    "AADSTS700211": "add a federated credential with the token's issuer to the identity",
    "AADSTS700213": "add a federated credential with the token's subject to the identity",
    "AADSTS700212": "have the token issued for the audience of the federated credential (api://AzureADTokenExchange)",
    "AADSTS7000272": "have the federated token signed with a key that its issuer publishes",
    "AADSTS50013": "have the federated token signed with a key that its issuer publishes",
    "AADSTS90061": "make the issuer's metadata public: Entra ID does not reach it",
    "AADSTS500011": "the tenant does not know the server application: give the authority host of the cluster's cloud",
    "AADSTS53003": "Conditional Access forbids this way to sign in: use a service principal or `--login azure-cli`",
}


@dataclass(frozen=True)
class TokenSource:
    """A credential that is ready to be asked.

    `fingerprint` stands for it in the cache's key: a thumbprint or a digest. None where somebody else keeps the tokens
    and may change who they are for (the Azure CLI): those are asked for each time.
    """

    fingerprint: str | None
    request: Callable[[], AccessToken]


def token_source(login: Login, environ: Mapping[str, str], now: Clock) -> TokenSource:
    """The credential that a login names; raises LoginRefused. Its `request` raises SignInRefused."""
    match login.kind:
        case LoginKind.CERTIFICATE:
            assert login.certificate is not None
            return _certificate(login, login.certificate, login.client_id, now, login.certificate_password_file)
        case LoginKind.SECRET:
            assert login.client_secret_file is not None
            secret = certificate_file.content(login.client_secret_file).decode(errors="replace").strip()
            return _secret(login, login.client_id, secret)
        case LoginKind.WORKLOAD_IDENTITY:
            assert login.federated_token_file is not None
            return _federated(login, login.client_id, _file(login.federated_token_file), "")
        case LoginKind.GITHUB:
            return _github(login, environ)
        case LoginKind.MANAGED_IDENTITY:
            return _managed_identity(login, login.client_id)
        case LoginKind.AZURE_CLI:
            return _azure_cli(login)
        case LoginKind.ARM:
            return _arm(login, environ, now)
        case LoginKind.DEVICE_CODE:
            raise AssertionError("a device code is no credential: identity.access.device_code")


def _arm(login: Login, environ: Mapping[str, str], now: Clock) -> TokenSource:
    """The deployer of the ARM_* variables. Where the login names a client id, they must be that one's."""
    found = environ.get("ARM_CLIENT_ID") or None
    if login.client_id is not None and (found or "").lower() != login.client_id.lower():
        raise LoginRefused(
            f"ARM_CLIENT_ID is {found or 'not set'}, but the login is of {login.client_id}; set the ARM_* variables of "
            "that one, or leave out --client-id to sign in as whoever they name"
        )
    tenant_id = environ.get("ARM_TENANT_ID")
    if tenant_id and login.tenant_id and tenant_id.lower() != login.tenant_id.lower():
        raise LoginRefused(f"ARM_TENANT_ID is {tenant_id}, but this login is in {login.tenant_id}; correct one of them")
    method = arm_environment.method(environ)
    if found is None and method in {Method.CERTIFICATE, Method.SECRET, Method.OIDC}:
        raise LoginRefused("ARM_CLIENT_ID is not set; set it to the client id that the other ARM_* variables belong to")
    match method:
        case Method.CERTIFICATE:
            password = environ.get("ARM_CLIENT_CERTIFICATE_PASSWORD")
            return _certificate(login, Path(environ["ARM_CLIENT_CERTIFICATE_PATH"]), found, now, password=password)
        case Method.SECRET:
            return _secret(login, found, environ["ARM_CLIENT_SECRET"])
        case Method.OIDC:
            request = arm_environment.assertion(environ)
            secret = environ.get("ARM_OIDC_REQUEST_TOKEN") or environ.get(_GITHUB[1], "")
            return _federated(login, found, request, secret)
        case Method.MANAGED_IDENTITY:
            return _managed_identity(login, found)
    return _azure_cli(login)


def _certificate(
    login: Login,
    path: Path,
    client_id: str | None,
    now: Clock,
    password_file: Path | None = None,
    password: str | None = None,
) -> TokenSource:
    found = certificate_file.read(path, password_file, now(), password=password)
    tenant_id = _agreed("tenant", path, login.tenant_id, found.tenant_id)
    client_id = _agreed("client", path, client_id, found.client_id)
    return _asking(
        login,
        f"certificate {found.thumbprint} {tenant_id} {client_id}",
        lambda: client(login.authority_host, tenant_id, client_id, found.pem, **_TIMEOUTS),
    )


def _agreed(what: str, path: Path, given: str | None, found: str | None) -> str:
    """The id that the login or the file has; raises LoginRefused where they differ or neither has one."""
    if given is not None and found is not None and given.lower() != found.lower():
        raise LoginRefused(f"{path} is of the {what} {found}, but --{what}-id is {given}; correct one of them")
    if (agreed := given or found) is None:
        raise LoginRefused(f"--{what}-id is missing: {path} is no credential document, which would have it")
    return agreed


def _secret(login: Login, client_id: str | None, secret: str) -> TokenSource:
    if not secret:
        raise LoginRefused(f"{login.client_secret_file} is empty; put the value of the client secret there")
    return _asking(
        login,
        f"secret {client_id} {_digest(secret)}",
        lambda: ClientSecretCredential(login.tenant_id or "", client_id or "", secret, **_options(login)),
    )


def _github(login: Login, environ: Mapping[str, str]) -> TokenSource:
    if missing := [name for name in _GITHUB if not environ.get(name)]:
        raise LoginRefused(
            f"{' and '.join(missing)} not set; in the GitHub workflow give the job `permissions: id-token: write`"
        )
    only = {name: environ[name] for name in _GITHUB}
    return _federated(login, login.client_id, arm_environment.assertion(only), environ[_GITHUB[1]])


def _federated(login: Login, client_id: str | None, assertion: Callable[[], str], secret: str) -> TokenSource:
    """`secret` identifies the job that may ask for assertions; without one the assertion at hand does."""
    owner = secret or _owner(assertion())
    return _asking(
        login,
        f"federated {client_id} {_digest(owner)}",
        lambda: ClientAssertionCredential(login.tenant_id or "", client_id or "", assertion, **_options(login)),
    )


def _owner(assertion: str) -> str:
    """Whom a federated token speaks for: issuer, subject and audience, or all of a token that cannot be read."""
    claims = claims_of(assertion)
    return " ".join(str(claims.get(name)) for name in ("iss", "sub", "aud")) if claims else assertion


def _file(path: Path) -> Callable[[], str]:
    return lambda: certificate_file.content(path).decode(errors="replace").strip()


def _managed_identity(login: Login, client_id: str | None) -> TokenSource:
    return _asking(login, f"managed identity {client_id}", lambda: ManagedIdentityCredential(client_id=client_id))


def _azure_cli(login: Login) -> TokenSource:
    def connect() -> TokenCredential:
        return AzureCliCredential(tenant_id=login.tenant_id or "", process_timeout=_CLI_TIMEOUT)

    return _asking(login, None, connect)


def _asking(login: Login, fingerprint: str | None, connect: Callable[[], TokenCredential]) -> TokenSource:
    def request() -> AccessToken:
        try:
            return connect().get_token(login.scope)
        except AzureError as error:
            reason = refusal(error)
            fix = _FIXES.get(reason.code or "")
            raise SignInRefused(
                f"{login.kind} sign-in: {str(reason).rstrip(' .')}" + (f". {fix}" if fix else "")
            ) from None
        except ValueError as error:  # azure-identity's for an id or authority it cannot use
            raise LoginRefused(f"{login.kind} sign-in: {error}") from None

    return TokenSource(fingerprint, request)


def _options(login: Login) -> dict[str, Any]:
    return {
        "authority": login.authority_host,
        "disable_instance_discovery": True,
        "connection_verify": ca_bundle(),
        **_TIMEOUTS,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
