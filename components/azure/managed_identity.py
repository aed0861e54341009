"""A user-assigned managed identity with its federated credentials and its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.ownership import identity_tags
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity, RoleGrant
from identity.settings import HostedClusterSettings, Settings
from identity.settings.scopes import scope_ids


@dataclass(frozen=True, kw_only=True)
class ManagedIdentityArgs:
    """What `managed_identity` registers.

    Service accounts sign in by the federated credentials, whose names are in `credentials` by the subject's word. Entra
    ID compares `issuer` (None if the row has no subjects) and `audience` byte for byte. `stack_owner` is the stack's
    owner id. `trusted` has the resources of the issuer, and `infrastructure` those with the roles' scopes; both are
    empty if they exist already.
    """

    row: DataPlaneIdentity | OptionalManagedIdentity
    grants: Sequence[RoleGrant]
    settings: Settings
    cluster: HostedClusterSettings
    identity_name: str
    location: str
    credentials: Mapping[str, str]
    issuer: str | None
    audience: str
    stack_owner: pulumi.Input[str] | None
    infrastructure: Sequence[pulumi.Resource]
    trusted: Sequence[pulumi.Resource] = ()


def managed_identity(
    name: str, args: ManagedIdentityArgs, parent: pulumi.Resource
) -> managedidentity.UserAssignedIdentity:
    """Register the identity, its credentials and its roles under `parent`; their logical names begin with `name`."""
    row, settings = args.row, args.settings
    identity = managedidentity.UserAssignedIdentity(
        f"{name}-identity",
        resource_name_=args.identity_name,
        resource_group_name=settings.resource_group,
        location=args.location,
        tags=identity_tags(settings, args.stack_owner),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    previous: list[pulumi.Resource] = [identity, *args.trusted]
    for subject in row.subjects:
        # Azure rejects concurrent writes to the credentials of one identity.
        credential = managedidentity.FederatedIdentityCredential(
            f"{name}-federated-{subject.word}",
            federated_identity_credential_resource_name=args.credentials[subject.word],
            resource_name_=args.identity_name,
            resource_group_name=settings.resource_group,
            issuer=args.issuer,
            subject=subject.subject,
            audiences=[args.audience],
            opts=pulumi.ResourceOptions(parent=parent, depends_on=previous),
        )
        previous = [credential]
    for number, grant in enumerate(args.grants, 1):
        RoleGrants(
            f"{name}-roles" if number == 1 else f"{name}-roles-{number}",
            RoleGrantsArgs(
                infra_id=args.cluster.infra_id,
                component=row.component,
                role=grant.role,
                scopes=scope_ids(settings, args.cluster, grant),
                subscription_id=settings.subscription_id,
                principal_id=identity.principal_id,
            ),
            pulumi.ResourceOptions(parent=parent, depends_on=list(args.infrastructure) or None),
        )
    return identity
