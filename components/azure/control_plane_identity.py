"""One identity of the hosted control plane: its credential, the secret that holds it, and its roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.azure.credential_secret import CredentialStore, CredentialSummary, ImportedCredential, credential_secret
from components.azure.entra_application import EntraApplication, EntraApplicationArgs
from components.azure.key_vault_user import READER_COMPONENT
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from components.plugin.resources import HsmRoleAssignment
from identity import resource_types
from identity.catalogue_rows import ControlPlaneIdentity
from identity.naming import role_assignment_name, secret_id, secret_reader_name
from identity.roles import KEY_VAULT_SECRETS_USER_ROLE, MANAGED_HSM_CRYPTO_USER
from identity.settings import HostedClusterSettings, Settings
from identity.settings.scopes import control_plane_grant, hsm_keys, kms_vault_word, scope_ids


@dataclass(frozen=True, kw_only=True)
class ControlPlaneIdentityArgs:
    """Inputs of `ControlPlaneIdentityComponent`; `source` decides where the credential comes from.

    `stack_owner` is the stack's owner id, None in a run that only renews.
    `infrastructure` is what the roles' scopes are in, empty if it exists already.
    """

    row: ControlPlaneIdentity
    settings: Settings
    cluster: HostedClusterSettings
    source: EntraApplicationArgs | ImportedCredential
    store: CredentialStore
    stack_owner: pulumi.Input[str] | None
    infrastructure: Sequence[pulumi.Resource] = ()


class ControlPlaneIdentityComponent(pulumi.ComponentResource):
    """Credential source -> credential document -> Key Vault secret, and the identity's role at each of its scopes.

    Outputs: `client_id`, `principal_id` (Input[str]), `secret_name` (str), `summary` (Input[CredentialSummary]).

    Resources that need the identity depend on `usable` (its secret, its roles) and not on the whole component: a target
    that leaves the program stays if a resource outside of the targets depends on it (pulumi/pulumi v3.259
    `step_generator.go`, `getDependencySteps`), and so would a leaked certificate.
    """

    def __init__(self, name: str, args: ControlPlaneIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(resource_types.CONTROL_PLANE_IDENTITY, name, None, opts)
        settings, cluster = args.settings, args.cluster
        self.secret_name = cluster.identity(args.row).secret_name
        child = pulumi.ResourceOptions(parent=self)
        self.usable: list[pulumi.Resource] = []
        source = (
            args.source
            if isinstance(args.source, ImportedCredential)
            else EntraApplication(f"{name}-entra", args.source, child)
        )
        self.summary: CredentialSummary | pulumi.Output[CredentialSummary] = source.summary
        if source.document is not None:
            secret = credential_secret(
                f"{name}-credential-secret",
                source.document,
                cluster.identity(args.row),
                settings,
                args.store,
                stack_owner=args.stack_owner,
                opts=child,
            )
            self.usable.append(secret)
            # The outputs name what was delivered, also in a run that goes on after an error.
            delivered = pulumi.Output.all(summary=source.summary, at=secret.outputs["deliveredAt"])
            self.summary = delivered.apply(lambda known: known["summary"])
        if args.store.reader is not None:
            # After the secret: ARM assigns a role at a resource that exists.
            after = pulumi.ResourceOptions(parent=self, depends_on=[*self.usable, *args.store.vault])
            self.usable.append(_reader_role(secret_reader_name(name), args, args.store.reader, after))
        grant = control_plane_grant(settings, cluster, args.row)
        roles = RoleGrants(
            f"{name}-roles",
            RoleGrantsArgs(
                infra_id=cluster.infra_id,
                component=args.row.component,
                role=grant.role,
                scopes=scope_ids(settings, cluster, grant),
                subscription_id=settings.subscription_id,
                principal_id=source.principal_id,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=list(args.infrastructure) or None),
        )
        self.usable.append(roles)
        for hsm, key in hsm_keys(cluster, grant):
            scope = f"/keys/{key}"
            role = HsmRoleAssignment(
                # With the key in its name: another key's assignment is made before this one goes.
                f"{name}-roles-{kms_vault_word(hsm)}-{key.lower()}",
                cloud=settings.cloud.name,
                tenantId=settings.tenant_id,
                hsm=hsm,
                scope=scope,
                name=role_assignment_name(cluster.infra_id, args.row.component, f"{hsm}{scope}"),
                roleDefinition=MANAGED_HSM_CRYPTO_USER,
                principalId=source.principal_id,
                opts=child,
            )
            self.usable.append(role)
        self.client_id: pulumi.Input[str] = source.client_id
        self.principal_id: pulumi.Input[str] = source.principal_id
        self.register_outputs(
            {"client_id": self.client_id, "principal_id": self.principal_id, "secret_name": self.secret_name}
        )


def _reader_role(
    name: str, args: ControlPlaneIdentityArgs, reader: pulumi.Input[str], opts: pulumi.ResourceOptions
) -> RoleGrants:
    """The key-vault-user's role on this identity's secret alone."""
    secret = secret_id(args.store.vault_id, args.cluster.identity(args.row).secret_name)
    grants = RoleGrantsArgs(
        infra_id=args.cluster.infra_id,
        component=READER_COMPONENT,
        role=KEY_VAULT_SECRETS_USER_ROLE,
        scopes={"secret": secret},
        subscription_id=args.settings.subscription_id,
        principal_id=reader,
    )
    return RoleGrants(name, grants, opts)
