"""Options by which a person says how to sign in to an AKS API server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from identity.login_kinds import LOGIN_KINDS, LoginKind

_KINDS: Final = "With what to sign in: " + "; ".join(f"{kind}, {row.description}" for kind, row in LOGIN_KINDS.items())
KindOption: TypeAlias = Annotated[LoginKind | None, typer.Option("--login", help=_KINDS)]
TenantOption: TypeAlias = Annotated[str | None, typer.Option(help="Tenant of the cluster.")]
ClientOption: TypeAlias = Annotated[str | None, typer.Option(help="Application (client) id of the identity.")]
CertificateOption: TypeAlias = Annotated[Path | None, typer.Option(help="Credential document, PEM or PKCS#12.")]
PasswordOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with what opens the certificate.")]
SecretOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with the client secret.")]
FederatedOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with a token that Entra ID trusts.")]
ImdsOption: TypeAlias = Annotated[str | None, typer.Option(help="Where IMDS answers, if not as usual.")]
AuthorityOption: TypeAlias = Annotated[str | None, typer.Option(help="Entra ID of the cluster's cloud.")]
ServerOption: TypeAlias = Annotated[str | None, typer.Option(help="Application the token is for.")]
