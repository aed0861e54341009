"""The identity that the ARM_* variables sign in, read as the providers read them, and its credential.

Sources: azure-native's `provider/pkg/provider/auth_azidentity.go`; azuread's and azurerm's `internal/provider`, and the
order of go-azure-sdk's `sdk/auth`. A variable that only some of them read is refused by name, so that a pipeline has
the same identity in all of them.
"""

from __future__ import annotations

import base64
import binascii
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from identity.azure.errors import LoginRefusedError
from identity.credentials.byte_order_mark import foreign_encoding
from identity.credentials.rfc3339 import Clock, utc_now

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential


class Method(StrEnum):
    """How the deployer signs in, in the providers' order of preference."""

    CERTIFICATE = "certificate"
    SECRET = "secret"
    OIDC = "oidc"
    MANAGED_IDENTITY = "managed-identity"
    AZURE_CLI = "azure-cli"


# The variables that select a method; azure-native reads only those of the second table.
METHODS: Final[Mapping[str, Method]] = {
    "ARM_CLIENT_CERTIFICATE": Method.CERTIFICATE,
    "ARM_CLIENT_CERTIFICATE_PATH": Method.CERTIFICATE,
    "ARM_CLIENT_SECRET": Method.SECRET,
    "ARM_CLIENT_SECRET_FILE_PATH": Method.SECRET,
    "ARM_USE_OIDC": Method.OIDC,
    "ARM_USE_AKS_WORKLOAD_IDENTITY": Method.OIDC,
    "ARM_USE_MSI": Method.MANAGED_IDENTITY,
}
AZURE_NATIVE_VARIABLES: Final = frozenset(
    {"ARM_CLIENT_CERTIFICATE_PATH", "ARM_CLIENT_SECRET", "ARM_USE_OIDC", "ARM_USE_MSI"}
)
# Useless without the variable behind them: a user who sets one means to sign in with it.
_BELONGS_TO: Final[Mapping[str, str]] = {
    "ARM_CLIENT_CERTIFICATE_PASSWORD": "ARM_CLIENT_CERTIFICATE_PATH",
    **dict.fromkeys(
        (
            "ARM_OIDC_TOKEN",
            "ARM_OIDC_TOKEN_FILE_PATH",
            "ARM_OIDC_REQUEST_URL",
            "ARM_OIDC_REQUEST_TOKEN",
            "ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID",
            "ARM_OIDC_AZURE_SERVICE_CONNECTION_ID",
        ),
        "ARM_USE_OIDC=true",
    ),
    "ARM_CLIENT_ID": "ARM_CLIENT_SECRET, ARM_CLIENT_CERTIFICATE_PATH or ARM_USE_OIDC=true",
    "ARM_CLIENT_ID_FILE_PATH": "ARM_CLIENT_SECRET_FILE_PATH or ARM_USE_OIDC=true",
}
_FLAGS: Final = ("ARM_USE_OIDC", "ARM_USE_AKS_WORKLOAD_IDENTITY", "ARM_USE_MSI", "ARM_USE_CLI")
# Seconds. `az` starts slowly, and waits for other `az` processes.
_CLI_TIMEOUT: Final = 60
# The commands that convert a file, by its encoding.
_COMMANDS: Final = {
    "UTF-8 with a byte-order mark": "sed '1s/^\\xEF\\xBB\\xBF//'",
    "UTF-16": "iconv -f UTF-16 -t UTF-8",
}
_FALSE: Final = frozenset({"0", "f", "F", "false", "False", "FALSE"})


@dataclass(frozen=True, kw_only=True)
class ClientIdentity:
    """Who signs in, and with what.

    Attributes:
        client_id, tenant_id: None if they are not known.
        certificate: its source, for messages, and the content; with a `password` if it has one.
        assertion: returns a fresh token of another issuer.
        job: identifies the pipeline's job that may request such tokens, empty for other sources.
    """

    method: Method
    client_id: str | None = None
    tenant_id: str | None = None
    certificate: tuple[str, bytes] = field(default=("", b""), repr=False)
    password: bytes = field(default=b"", repr=False)
    secret: str = field(default="", repr=False)
    assertion: Callable[[], str] = str
    job: str = field(default="", repr=False)


def deployer(environ: Mapping[str, str]) -> ClientIdentity:
    """Read the variables; raises LoginRefusedError for missing, contradictory or unsupported ones."""
    variables = {name: value for name, value in environ.items() if value}
    method = _method(variables)
    is_aks = variables.get("ARM_USE_AKS_WORKLOAD_IDENTITY") == "true"
    client_id = _agreed(
        {
            "ARM_CLIENT_ID": variables.get("ARM_CLIENT_ID"),
            "ARM_CLIENT_ID_FILE_PATH": _content(variables, "ARM_CLIENT_ID_FILE_PATH"),
            "AZURE_CLIENT_ID": variables.get("AZURE_CLIENT_ID") if is_aks else None,
        },
        are_ids=True,
    )
    if client_id is None and method in {Method.CERTIFICATE, Method.SECRET, Method.OIDC}:
        raise LoginRefusedError(
            "ARM_CLIENT_ID is not set; set it to the client id that the other ARM_* variables belong to"
        )
    tenants = {
        "ARM_TENANT_ID": variables.get("ARM_TENANT_ID"),
        "AZURE_TENANT_ID": variables.get("AZURE_TENANT_ID") if is_aks else None,
    }
    attributes: dict[str, Any] = {"method": method, "client_id": client_id, "tenant_id": _agreed(tenants, are_ids=True)}
    match method:
        case Method.CERTIFICATE:
            attributes |= {
                "certificate": _certificate(variables),
                "password": variables.get("ARM_CLIENT_CERTIFICATE_PASSWORD", "").encode(),
            }
        case Method.SECRET:
            file = _content(variables, "ARM_CLIENT_SECRET_FILE_PATH")
            attributes["secret"] = _agreed(
                {"ARM_CLIENT_SECRET": variables.get("ARM_CLIENT_SECRET"), "ARM_CLIENT_SECRET_FILE_PATH": file}
            )
        case Method.OIDC:
            attributes["assertion"], attributes["job"] = _assertion(variables, is_aks=is_aks)
    return ClientIdentity(**attributes)


def require_azure_native(environ: Mapping[str, str]) -> None:
    """Refuse variables that azuread would sign in with while azure-native would use the account of `az login`.

    Raises LoginRefusedError, also as `deployer` does.
    """
    deployer(environ)
    named = _named({name: value for name, value in environ.items() if value})
    if named and not named.keys() & AZURE_NATIVE_VARIABLES:
        raise LoginRefusedError(
            f"{next(iter(named))} is set, which azure-native does not read: it would use the account of `az login`. "
            f"Set one of {', '.join(sorted(AZURE_NATIVE_VARIABLES))} instead"
        )


def _named(variables: Mapping[str, str]) -> dict[str, Method]:
    """The variables that select a method, and which."""
    off = {name for name in _FLAGS if variables.get(name) in _FALSE}
    return {name: method for name, method in METHODS.items() if name in variables and name not in off}


def _method(variables: Mapping[str, str]) -> Method:
    if variables.get("ARM_USE_DEFAULT_AZURE_CREDENTIAL", "false") not in _FALSE:
        raise LoginRefusedError(
            "ARM_USE_DEFAULT_AZURE_CREDENTIAL is set: azure-native alone reads it, and whom it finds depends on the "
            "machine. Unset it, and name one way to sign in"
        )
    for name in _FLAGS:
        if (value := variables.get(name, "true")) != "true" and value not in _FALSE:
            raise LoginRefusedError(
                f'{name} is "{value}", which azuread takes for true or refuses, and azure-native for false; set it to '
                "true or false"
            )
    named, order = _named(variables), list(Method)
    winner = min(named, key=lambda name: order.index(named[name]), default=None)
    native = min(named.keys() & AZURE_NATIVE_VARIABLES, key=lambda name: order.index(named[name]), default=None)
    if winner is None:
        _refuse_leftovers(variables)
        return Method.AZURE_CLI
    if native is not None and named[native] is not named[winner]:
        raise LoginRefusedError(
            f"{winner} and {native} are set: azuread signs in by the first, azure-native, which does not read it, by "
            "the second; unset one of them"
        )
    if named[winner] is Method.MANAGED_IDENTITY and variables.get("ARM_MSI_ENDPOINT"):
        raise LoginRefusedError(
            "ARM_MSI_ENDPOINT is set, which azuread alone reads; unset it: IMDS is found without it"
        )
    return named[winner]


def _refuse_leftovers(variables: Mapping[str, str]) -> None:
    """Refuse a sign-in by the Azure CLI although a variable names another identity."""
    for name, needed in _BELONGS_TO.items():
        if name in variables:
            raise LoginRefusedError(
                f"{name} is set without {needed}: the providers would use the account of `az login`. Set what it "
                "belongs to, or unset it"
            )
    if variables.get("ARM_USE_CLI", "true") in _FALSE:
        raise LoginRefusedError("ARM_USE_CLI is false, and no other ARM_* variable names a way to sign in; set one")


def _agreed(values: Mapping[str, str | None], *, are_ids: bool = False) -> str | None:
    """The value that the variables agree on; raises LoginRefusedError with their names where they do not."""
    named = {name: value for name, value in values.items() if value is not None}
    if len({value.lower() if are_ids else value for value in named.values()}) > 1:
        raise LoginRefusedError(f"{' and '.join(named)} differ; correct or unset one of them")
    return next(iter(named.values()), None)


def _content(variables: Mapping[str, str], name: str) -> str | None:
    return secret_text(Path(variables[name])) if name in variables else None


def _certificate(variables: Mapping[str, str]) -> tuple[str, bytes]:
    inline, path = variables.get("ARM_CLIENT_CERTIFICATE"), variables.get("ARM_CLIENT_CERTIFICATE_PATH")
    if inline and path:
        raise LoginRefusedError("ARM_CLIENT_CERTIFICATE and ARM_CLIENT_CERTIFICATE_PATH are set; unset one of them")
    if path:
        return path, secret_file(Path(path))
    try:
        return "ARM_CLIENT_CERTIFICATE", base64.b64decode("".join((inline or "").split()), validate=True)
    except (binascii.Error, ValueError):
        raise LoginRefusedError(
            "ARM_CLIENT_CERTIFICATE is not base64; put the PKCS#12 file there as `base64 -w0 <file>` prints it"
        ) from None


def _assertion(variables: Mapping[str, str], *, is_aks: bool) -> tuple[Callable[[], str], str]:
    """The source of fresh tokens and the job that may request them: a variable, a file, or a pipeline's endpoint."""
    names = ["ARM_OIDC_TOKEN_FILE_PATH", *(["AZURE_FEDERATED_TOKEN_FILE"] if is_aks else [])]
    files = [Path(variables[name]) for name in names if name in variables]
    if files:
        tokens = {str(file): secret_text(file) for file in files}
        _agreed({"ARM_OIDC_TOKEN": variables.get("ARM_OIDC_TOKEN"), **tokens})
        return lambda: secret_text(files[-1]), ""
    if token := variables.get("ARM_OIDC_TOKEN"):
        return lambda: token, ""
    if variables.get("ARM_USE_OIDC") != "true":
        raise LoginRefusedError(
            "ARM_USE_AKS_WORKLOAD_IDENTITY is true, and AZURE_FEDERATED_TOKEN_FILE is not set; let the pod use "
            "workload identity: the label azure.workload.identity/use and a service account with the client id"
        )
    from identity.azure import pipeline_token  # httpx, a tenth of a second that no other way needs

    request = pipeline_token.of(variables)
    return request.fetched, request.bearer


def secret_file(path: Path) -> bytes:
    """The content of a file with a secret; raises LoginRefusedError, also for a text in a Windows encoding."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LoginRefusedError(
            f"{path} cannot be read ({error.strerror}); name a file that this user may read"
        ) from None
    if encoding := foreign_encoding(data):
        raise LoginRefusedError(
            f"{path} is in {encoding}; accepted is UTF-8 without a byte-order mark: `{_COMMANDS[encoding]} "
            f"{shlex.quote(str(path))}` prints it so"
        )
    return data


def secret_text(path: Path) -> str:
    """A file's text without surrounding white space; raises LoginRefusedError, also if it is empty."""
    try:
        found = secret_file(path).decode().strip()
    except UnicodeDecodeError:
        raise LoginRefusedError(f"{path} is not UTF-8 text; put the value itself there") from None
    if not found:
        raise LoginRefusedError(f"{path} is empty; put the value itself there")
    return found


def credential(
    tenant_id: str, environ: Mapping[str, str] = os.environ, clock: Clock = utc_now, **options: Any
) -> TokenCredential:
    """The variables' credential for the tenant; `options` as of `credential_of`. Raises LoginRefusedError."""
    return credential_of(deployer(environ), tenant_id, clock, **options)


def credential_of(
    client: ClientIdentity, tenant_id: str | None, clock: Clock, *, send_certificate_chain: bool = False, **options: Any
) -> TokenCredential:
    """A client's credential for the tenant; `options` (authority, connection_verify) go to it.

    Raises LoginRefusedError for a certificate that cannot be used.
    """
    from azure.identity import (  # a quarter of a second that a kept token does not need
        AzureCliCredential,
        CertificateCredential,
        ClientAssertionCredential,
        ClientSecretCredential,
        ManagedIdentityCredential,
    )
    from identity.credentials.transport import EnvironmentTransport

    options["transport"] = EnvironmentTransport(**options)
    tenant, client_id = tenant_id or "", client.client_id or ""
    match client.method:
        case Method.CERTIFICATE:
            from identity.azure import certificate_file

            name, data = client.certificate
            file = certificate_file.parse(name, data, client.password, clock())
            return CertificateCredential(
                certificate_file.agreed("tenant", name, tenant_id, file.tenant_id),
                certificate_file.agreed("client", name, client.client_id, file.client_id),
                certificate_data=file.pem,
                send_certificate_chain=send_certificate_chain,
                **options,
            )
        case Method.SECRET:
            return ClientSecretCredential(tenant, client_id, client.secret, **options)
        case Method.OIDC:
            return ClientAssertionCredential(tenant, client_id, client.assertion, **options)
        case Method.MANAGED_IDENTITY:
            brief = EnvironmentTransport(connection_timeout=2)  # as azure-identity's: off Azure nobody is there
            return ManagedIdentityCredential(client_id=client.client_id, transport=brief)
    return AzureCliCredential(tenant_id=tenant, process_timeout=_CLI_TIMEOUT)
