"""`idstack kubeconfig`: a kubeconfig with the sign-in to the management cluster, written or merged."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from identity.aks.exec_user import exec_user
from identity.aks.kubeconfig import Kubeconfig, MalformedKubeconfigError, add_context, usual_kubeconfigs
from identity.aks.legacy_login import LegacyLogin, is_convertible, legacy_login_of
from identity.aks.login import AKS_SERVER_APP_ID
from identity.clouds import CLOUDS, is_known_authority
from identity.login_kinds import Flavour, LoginKind
from ops.access.clients import StackAccess, stack_access
from ops.commands.options import DEFAULT_STACK, LoginOptions, Screen, StackOption, with_options
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message


@with_options
def kubeconfig(
    source: Annotated[
        Path | None, typer.Option("--from", help="Kubeconfig to convert, instead of one from AKS.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="File to write, - for standard output; KUBECONFIG or ~/.kube/config by default.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context to use; the current one by default.")] = None,
    flavour: Annotated[Flavour, typer.Option(help="Program that gets the tokens.")] = Flavour.IDSTACK,
    *,
    login: LoginOptions,
    public_fqdn: Annotated[bool, typer.Option(help="Use the public name of a private cluster.")] = False,
    admin: Annotated[bool, typer.Option(help="Use the administrators' static credential, without Entra ID.")] = False,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Write a kubeconfig with a sign-in, for the stack's management cluster or converted from another kubeconfig."""
    is_printed = file == Path("-")
    screen = Screen(as_json=is_printed)
    access = (
        stack_access(Engine(stack), admin=admin, public_fqdn=public_fqdn)
        if source is None
        else _of_file(source, context, login)
    )
    name = access.kubeconfig.chosen(context)
    user = access.kubeconfig.entries("users")[access.kubeconfig.entries("contexts")[name]["user"]]
    if not admin:
        hints, chosen_login = access.hints, access.login
        if login.kind is not None or chosen_login is None:
            chosen_login = login.login(
                kind=LoginKind.ARM,
                tenant_id=None if login.kind is LoginKind.MANAGED_IDENTITY else hints.tenant_id,
                authority_host=hints.authority_host,
                server_id=hints.server_id,
            )
        user = exec_user(chosen_login, flavour, access.environment)
    chosen = access.kubeconfig.only(name, user=user)
    written = [] if is_printed else add_context((file,) if file else usual_kubeconfigs(), chosen)
    if admin:
        rest = " Delete it after use, and rotate the cluster's certificates."
        screen.console.print(Text.assemble((message("kubeconfig.administrators"), "bold red"), rest))
    if is_printed:
        print(chosen.to_yaml(), end="")
    else:
        screen.console.print(f'context "{name}" written to {", ".join(map(str, written))}')


def _of_file(source: Path, context: str | None, login: LoginOptions) -> StackAccess:
    """One context of a kubeconfig with a legacy sign-in to AKS.

    Raises MalformedKubeconfigError for another sign-in. What could give the credential or a token to somebody else
    needs the option with the same value, or the agreement of a person at a terminal.
    """
    if not source.exists():
        raise MalformedKubeconfigError(f"{source} does not exist; name a kubeconfig with --from")
    source_file = Kubeconfig.read(source)
    chosen = source_file.entries("contexts")[source_file.chosen(context)]
    owner, cluster = chosen["user"], source_file.entries("clusters").get(chosen["cluster"]) or {}
    user = source_file.entries("users")[owner]
    if not is_convertible(user):
        ways = ", ".join(sorted(user)) or "nothing"
        raise MalformedKubeconfigError(message("kubeconfig.not-convertible", user=owner, ways=ways))
    hints = legacy_login_of(user, owner)
    for problem, fix in _doubts(cluster, hints, login):
        if not sys.stdin.isatty():
            raise CommandError(f"{source} {problem}; nothing was written. {fix}")
        typer.confirm(f"{source} {problem}. Is it yours?", abort=True, err=True)
    return StackAccess(source_file, hints)


def _doubts(cluster: Mapping[str, Any], hints: LegacyLogin, login: LoginOptions) -> Iterator[tuple[str, str]]:
    """Who else than Azure and the cluster would get a credential or a token, and what a script does about it."""
    host, audience = hints.authority_host, hints.server_id
    if login.authority_host is None and host is not None and not is_known_authority(host):
        known = ", ".join(cloud.authority_host for cloud in CLOUDS.values())
        yield (
            f'signs in at "{host}", which is not an authority host of Azure: it would get the credential',
            f"Known are {known}. If it is yours, name it: --authority-host {shlex.quote(host)}",
        )
    if login.server_id is None and audience is not None and audience.lower() != AKS_SERVER_APP_ID:
        yield (
            f'asks for tokens for "{audience}", which is not AKS: {cluster.get("server")} would get them, and could '
            "use them there",
            f"If the API server is that application, name it: --server-id {shlex.quote(audience)}",
        )
    if cluster.get("insecure-skip-tls-verify"):
        yield (
            f"does not verify the certificate of {cluster.get('server')}: whoever answers would get the token",
            "Put certificate-authority-data in the place of insecure-skip-tls-verify",
        )
    if proxy := cluster.get("proxy-url"):
        yield f'sends every request by the proxy "{proxy}"', "Take proxy-url out, and set HTTPS_PROXY if it is yours"
