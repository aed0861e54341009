"""The keys of the way to the management cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool

from identity.login_kinds import LOGIN_KINDS, UNATTENDED, Flavour, LoginKind
from identity.settings.schema import types
from identity.settings.schema.base import Model
from identity.settings.schema.problems import enumerate_words
from identity.settings.schema.schema_node import ValueSpec
from identity.similar import similar


def _unattended(kind: LoginKind) -> LoginKind:
    if kind not in UNATTENDED:
        raise ValueError("a run of the stack has nobody to ask")
    return kind


StackLogin = Annotated[
    LoginKind,
    ValueSpec(
        rule="login",
        accepted=enumerate_words(UNATTENDED, last="or"),
        blank=f"<{'|'.join(UNATTENDED)}>",
        check=_unattended,
        guess=lambda text: similar(text, UNATTENDED) or text,
    ),
]


class AccessSettings(Model):
    """How the stack signs in to the management cluster's API server (`identity.aks.login`)."""

    flavour: Flavour = Field(Flavour.IDSTACK, description="Program in the kubeconfig that makes the tokens.")
    login: StackLogin = Field(
        LoginKind.ARM,
        description="How the stack signs in to the API server, without a person (`docs/guides/aks-access.md`): "
        + "; ".join(f"`{kind}`, {LOGIN_KINDS[kind].description}" for kind in UNATTENDED)
        + ".",
    )
    client_id: types.ClientId | None = Field(None, description="Client id (UUID) of the identity that signs in.")
    certificate: types.FilePath | None = Field(
        None, description="With `login: certificate`: path of a credential document, PEM or PKCS#12."
    )
    client_secret_file: types.FilePath | None = Field(
        None, description="With `login: secret`: path of a file with the client secret."
    )
    federated_token_file: types.FilePath | None = Field(
        None, description="With `login: workload-identity`: path of a file with a token that Entra ID trusts."
    )
    public_fqdn: StrictBool = Field(False, description="Use the public name of a private cluster.")
    admin: StrictBool = Field(
        False, description="Use the administrators' static credential, which does not come from Entra ID."
    )
