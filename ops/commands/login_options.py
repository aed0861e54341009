"""Options for the sign-in to an AKS API server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from identity.login_kinds import LOGIN_KINDS, LoginKind

_KINDS: Final = "How to sign in: " + "; ".join(f"{kind}, {row.description}" for kind, row in LOGIN_KINDS.items())
KindOption: TypeAlias = Annotated[LoginKind | None, typer.Option("--login", help=_KINDS)]
TenantOption: TypeAlias = Annotated[str | None, typer.Option(help="Tenant of the cluster.")]
ClientOption: TypeAlias = Annotated[str | None, typer.Option(help="Application (client) id of the identity.")]
CertificateOption: TypeAlias = Annotated[Path | None, typer.Option(help="Credential document, PEM or PKCS#12.")]
PasswordOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with the password of the certificate.")]
SecretOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with the client secret.")]
FederatedOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with a federated token.")]
ImdsOption: TypeAlias = Annotated[str | None, typer.Option(help="Endpoint of IMDS, if it is not the usual one.")]
AuthorityOption: TypeAlias = Annotated[str | None, typer.Option(help="Authority host of the cluster's cloud.")]
ServerOption: TypeAlias = Annotated[str | None, typer.Option(help="Application (client) id of the AKS API servers.")]
