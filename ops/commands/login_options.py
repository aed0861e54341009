"""Options by which a person says how to sign in to an AKS API server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from identity.access.login import LoginKind

KindOption: TypeAlias = Annotated[LoginKind | None, typer.Option("--login", help="With what to sign in.")]
TenantOption: TypeAlias = Annotated[str | None, typer.Option(help="Tenant of the cluster.")]
ClientOption: TypeAlias = Annotated[str | None, typer.Option(help="Application (client) id of the identity.")]
CertificateOption: TypeAlias = Annotated[Path | None, typer.Option(help="Credential document, PEM or PKCS#12.")]
PasswordOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with what opens the certificate.")]
SecretOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with the client secret.")]
FederatedOption: TypeAlias = Annotated[Path | None, typer.Option(help="File with a token that Entra ID trusts.")]
ImdsOption: TypeAlias = Annotated[str | None, typer.Option(help="Where IMDS answers, if not as usual.")]
AuthorityOption: TypeAlias = Annotated[str | None, typer.Option(help="Entra ID of the cluster's cloud.")]
ServerOption: TypeAlias = Annotated[str | None, typer.Option(help="Application the token is for.")]
