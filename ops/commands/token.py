"""`idstack token`: a token for an AKS API server, for kubectl and other clients of Kubernetes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from identity.aks import tokens
from identity.aks.exec_plugin import ExecRequest, clear_environment, prompt, render
from identity.aks.sign_in import claims_of
from identity.aks.tokens import TokenCache
from identity.credentials import rfc3339
from identity.login_kinds import LoginKind
from ops.commands.options import JsonOption, LoginOptions, Screen, with_options
from ops.stack.errors import CommandError, message

# The claims that are printed, in this order; a RoleBinding names the object id (oid).
_PRINTED: Final = ("tid", "aud", "oid", "appid", "upn", "groups")


@with_options
def token(
    for_exec: Annotated[bool, typer.Option("--exec", help="Print an ExecCredential, for a kubeconfig.")] = False,
    *,
    login: LoginOptions,
    device_code: Annotated[
        bool, typer.Option("--device-code", help="Let a person sign in; same as --login device-code.")
    ] = False,
    cache_dir: Annotated[Path | None, typer.Option(help="Directory of the cached tokens.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Sign in to an AKS API server; print the token with --exec, otherwise only its claims."""
    request = ExecRequest(os.environ)
    chosen = login.login(kind=_kind(login.kind, device_code))
    cache = TokenCache(cache_dir or tokens.directory())
    clear_environment(chosen)
    access_token = tokens.token(chosen, cache, os.environ, show=prompt(request))
    if for_exec:
        print(render(request.api_version, access_token.value, access_token.renew_at))
        return
    claims = claims_of(access_token.value)
    printed = {name: claims[name] for name in _PRINTED if name in claims} | {
        "expires": rfc3339.render(access_token.expires)
    }
    rows = ((name, ", ".join(value) if isinstance(value, list) else value) for name, value in printed.items())
    Screen(as_json).show(printed, *(f"{name:8} {value}" for name, value in rows))


def _kind(kind: LoginKind | None, device_code: bool) -> LoginKind:
    if device_code and kind not in (None, LoginKind.DEVICE_CODE):
        raise CommandError(f"--device-code and --login {kind} contradict each other; give one of them")
    if device_code:
        return LoginKind.DEVICE_CODE
    if kind is None:
        raise CommandError(message("token.no-login", kinds=", ".join(LoginKind)))
    return kind
