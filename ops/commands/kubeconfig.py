"""`idstack kubeconfig`: a kubeconfig that signs in by itself, written or merged."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from identity.access import kubeconfig_files
from identity.access.errors import AccessError
from identity.access.exec_user import exec_user
from identity.access.kubeconfig import Kubeconfig, MalformedKubeconfigError
from identity.access.legacy_login import is_convertible, legacy_login_of
from identity.access.login import AKS_SERVER_APP_ID, Login
from identity.clouds import CLOUDS, is_known_authority
from identity.login_kinds import Flavour, LoginKind
from ops.access.management_cluster import StackAccess, stack_access
from ops.commands import login_options
from ops.commands.options import DEFAULT_STACK, Screen, StackOption
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

_PUBLIC: Final = CLOUDS["AzurePublicCloud"].authority_host


def kubeconfig(
    source: Annotated[
        Path | None, typer.Option("--from", help="Kubeconfig to convert, instead of asking AKS for one.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="File to write; KUBECONFIG or ~/.kube/config by default.")] = None,
    context: Annotated[str | None, typer.Option(help="Context to take; the current one by default.")] = None,
    flavour: Annotated[Flavour, typer.Option(help="Program that gets the tokens.")] = Flavour.IDSTACK,
    kind: login_options.KindOption = None,
    tenant_id: login_options.TenantOption = None,
    client_id: login_options.ClientOption = None,
    certificate: login_options.CertificateOption = None,
    certificate_password_file: login_options.PasswordOption = None,
    client_secret_file: login_options.SecretOption = None,
    federated_token_file: login_options.FederatedOption = None,
    imds_endpoint: login_options.ImdsOption = None,
    authority_host: login_options.AuthorityOption = None,
    server_id: login_options.ServerOption = None,
    public_fqdn: Annotated[bool, typer.Option(help="Use the public name of a private cluster.")] = False,
    admin: Annotated[bool, typer.Option(help="Take the administrators' static credential, past Entra ID.")] = False,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Write a kubeconfig that signs in by itself, for the stack's management cluster or made of another kubeconfig."""
    screen = Screen(as_json=False)
    try:
        known = (
            stack_access(Engine(stack), admin=admin, public_fqdn=public_fqdn)
            if source is None
            else _of_file(source, context, authority_host)
        )
        name = known.kubeconfig.chosen(context)
        user = known.kubeconfig.entries("users")[known.kubeconfig.entries("contexts")[name]["user"]]
        if not admin:
            hints = known.hints
            login = known.login
            if kind is not None or login is None:
                login = Login(
                    kind=kind or LoginKind.ARM,
                    tenant_id=tenant_id or (None if kind is LoginKind.MANAGED_IDENTITY else hints.tenant_id),
                    client_id=client_id,
                    certificate=certificate,
                    certificate_password_file=certificate_password_file,
                    client_secret_file=client_secret_file,
                    federated_token_file=federated_token_file,
                    imds_endpoint=imds_endpoint,
                    authority_host=authority_host or hints.authority_host or _PUBLIC,
                    server_id=server_id or hints.server_id or AKS_SERVER_APP_ID,
                )
            user = exec_user(login, flavour, known.environment)
        files = (file,) if file else kubeconfig_files.usual_files()
        written = kubeconfig_files.add(files, known.kubeconfig.only(name, user=user))
    except AccessError as error:
        raise CommandError(str(error)) from None
    if admin:
        screen.console.print(
            "[bold red]This kubeconfig is the administrators': it works without Entra ID, for years, and the audit log "
            "does not name who uses it.[/bold red] Delete it after use, and rotate the cluster's certificates."
        )
    screen.console.print(f'context "{name}" written to {", ".join(map(str, written))}')


def _of_file(source: Path, context: str | None, authority_host: str | None) -> StackAccess:
    """One context of a kubeconfig that signs in to AKS in one of the legacy ways.

    Raises MalformedKubeconfigError if it signs in in another way, and for an authority that is none of Azure's, unless
    `authority_host` takes its place or a person at a terminal agrees.
    """
    if not source.exists():
        raise MalformedKubeconfigError(f"{source} is not there; name a kubeconfig with --from")
    found = Kubeconfig.read(source)
    owner = found.entries("contexts")[found.chosen(context)]["user"]
    user = found.entries("users")[owner]
    if not is_convertible(user):
        ways = ", ".join(sorted(user)) or "nothing"
        raise MalformedKubeconfigError(
            f'user "{owner}" signs in by {ways}, not to AKS by Entra ID; nothing was changed. Name another --context'
        )
    hints = legacy_login_of(user, owner)
    if authority_host is None and hints.authority_host is not None:
        _require_known(hints.authority_host, source)
    return StackAccess(found, hints)


def _require_known(host: str, source: Path) -> None:
    """Refuse an unknown host: it would get the client's secret, or a token to use as the client."""
    if is_known_authority(host):
        return
    found = f'{source} signs in at "{host}", which is no authority host of Azure\'s: it would get the credential'
    if not sys.stdin.isatty():
        known = ", ".join(each.authority_host for each in CLOUDS.values())
        raise CommandError(
            f"{found}; nothing was written. Known are {known}. If it is yours, name it: "
            f"--authority-host {shlex.quote(host)}"
        )
    typer.confirm(f"{found}. Is it yours?", abort=True, err=True)
