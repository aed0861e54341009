"""One identity of the hosted control plane: its credential, the secret that carries it, and its roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components.azure.credential_secret import CredentialSecret, CredentialSecretArgs
from components.azure.credential_store import CredentialStore
from components.azure.entra_application import EntraApplication, EntraApplicationArgs
from components.azure.imported_credential import ImportedCredential, ImportedCredentialArgs
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from identity.roles import Role


@dataclass(frozen=True, kw_only=True)
class ControlPlaneIdentityArgs:
    """Inputs of `ControlPlaneIdentityComponent`; `source` decides where the credential comes from."""

    source: EntraApplicationArgs | ImportedCredentialArgs
    secret_name: str
    object_encoding: str
    store: CredentialStore
    infra_id: str
    component: str
    role: Role
    scopes: Mapping[str, str]
    subscription_id: str
    tags: Mapping[str, str]


class ControlPlaneIdentityComponent(pulumi.ComponentResource):
    """Credential source -> credential document -> Key Vault secret, and the identity's role at each of its scopes.

    Outputs: `client_id`, `principal_id` (Output[str]), `secret_name` (str), `shown` (Output of notAfter, renewAfter and
    thumbprint).
    """

    def __init__(self, name: str, args: ControlPlaneIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:ControlPlaneIdentity", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        source = _source(name, args.source, child)
        if source.document is not None:
            CredentialSecret(
                f"{name}-credential",
                CredentialSecretArgs(
                    secret_name=args.secret_name,
                    object_encoding=args.object_encoding,
                    store=args.store,
                    document=source.document,
                    tags=args.tags,
                ),
                child,
            )
        RoleGrants(
            f"{name}-roles",
            RoleGrantsArgs(
                infra_id=args.infra_id,
                component=args.component,
                role=args.role,
                scopes=args.scopes,
                subscription_id=args.subscription_id,
                principal_id=source.principal_id,
            ),
            child,
        )
        self.client_id = source.client_id
        self.principal_id = source.principal_id
        self.secret_name = args.secret_name
        self.shown = source.shown
        self.register_outputs(
            {"client_id": self.client_id, "principal_id": self.principal_id, "secret_name": self.secret_name}
        )


def _source(
    name: str, args: EntraApplicationArgs | ImportedCredentialArgs, opts: pulumi.ResourceOptions
) -> EntraApplication | ImportedCredential:
    if isinstance(args, EntraApplicationArgs):
        return EntraApplication(f"{name}-entra", args, opts)
    return ImportedCredential(f"{name}-imported", args, opts)
