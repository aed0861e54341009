"""`idstack token`: a token for an AKS API server, for kubectl and other clients of Kubernetes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from identity.aks import tokens
from identity.aks.exec_plugin import ExecRequest, clear_environment, prompt, render
from identity.aks.login import AKS_SERVER_APP_ID, Login
from identity.aks.sign_in import claims_of
from identity.aks.tokens import TokenCache
from identity.clouds import CLOUDS
from identity.credentials import rfc3339
from identity.login_kinds import LoginKind
from ops.commands.options import (
    AuthorityOption,
    CertificateOption,
    ClientOption,
    FederatedOption,
    ImdsOption,
    JsonOption,
    KindOption,
    PasswordOption,
    Screen,
    SecretOption,
    ServerOption,
    TenantOption,
)
from ops.stack.errors import CommandError

_PUBLIC: Final = CLOUDS["AzurePublicCloud"].authority_host
# The claims that are printed, in this order; a RoleBinding names the object id (oid).
_PRINTED: Final = ("tid", "aud", "oid", "appid", "upn", "groups")


def token(
    for_exec: Annotated[bool, typer.Option("--exec", help="Print an ExecCredential, for a kubeconfig.")] = False,
    kind: KindOption = None,
    device_code: Annotated[
        bool, typer.Option("--device-code", help="Let a person sign in; same as --login device-code.")
    ] = False,
    tenant_id: TenantOption = None,
    client_id: ClientOption = None,
    certificate: CertificateOption = None,
    certificate_password_file: PasswordOption = None,
    client_secret_file: SecretOption = None,
    federated_token_file: FederatedOption = None,
    imds_endpoint: ImdsOption = None,
    authority_host: AuthorityOption = None,
    server_id: ServerOption = None,
    cache_dir: Annotated[Path | None, typer.Option(help="Directory of the cached tokens.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Sign in to an AKS API server; print the token with --exec, otherwise only its claims."""
    request = ExecRequest(os.environ)
    login = Login(
        kind=_kind(kind, device_code),
        tenant_id=tenant_id,
        client_id=client_id,
        certificate=certificate,
        certificate_password_file=certificate_password_file,
        client_secret_file=client_secret_file,
        federated_token_file=federated_token_file,
        imds_endpoint=imds_endpoint,
        authority_host=authority_host or _PUBLIC,
        server_id=server_id or AKS_SERVER_APP_ID,
    )
    cache = TokenCache(cache_dir or tokens.directory())
    clear_environment(login)
    access_token = tokens.token(login, cache, os.environ, show=prompt(request))
    if for_exec:
        print(render(request.api_version, access_token.value, access_token.renew_at))
        return
    claims = claims_of(access_token.value)
    printed = {name: claims[name] for name in _PRINTED if name in claims} | {
        "expires": rfc3339.render(access_token.expires)
    }
    screen = Screen(as_json)
    if as_json:
        screen.document(printed)
    for name, value in printed.items() if not as_json else ():
        screen.console.print(f"{name:8} {', '.join(value) if isinstance(value, list) else value}")


def _kind(kind: LoginKind | None, device_code: bool) -> LoginKind:
    if device_code and kind not in (None, LoginKind.DEVICE_CODE):
        raise CommandError(f"--device-code and --login {kind} contradict each other; give one of them")
    if device_code:
        return LoginKind.DEVICE_CODE
    if kind is None:
        raise CommandError(
            f"--login is missing: one of {', '.join(LoginKind)}, or --device-code to let a person sign in"
        )
    return kind
