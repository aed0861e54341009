"""A user-assigned managed identity with its federated credentials and its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.ownership import identity_tags
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity, RoleGrant
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings, Settings
from identity.settings.schema.managed_identities import managed_identity_of
from identity.settings.scopes import scope_ids

Row = TypeVar("Row", DataPlaneIdentity, OptionalManagedIdentity)


@dataclass(frozen=True, kw_only=True)
class ManagedIdentityArgs(Generic[Row]):
    """Inputs of a component with a managed identity.

    `stack_owner` is the stack's owner id. `infrastructure` has the resources with the roles' scopes, empty if they
    exist already.
    """

    row: Row
    settings: Settings
    cluster: HostedClusterSettings
    stack_owner: pulumi.Input[str] | None
    infrastructure: Sequence[pulumi.Resource] = ()


def managed_identity(
    name: str,
    parent: pulumi.Resource,
    args: ManagedIdentityArgs[Row],
    *,
    location: str,
    grants: Sequence[RoleGrant],
    credentials: Mapping[str, str],
    issuer: str | None,
    audience: str,
    trusted: Sequence[pulumi.Resource] = (),
) -> managedidentity.UserAssignedIdentity:
    """Register the identity, its credentials and its roles under `parent`; their logical names begin with `name`.

    Service accounts sign in by the federated credentials, whose names are in `credentials` by the subject's word. Entra
    ID compares `issuer` (None if the row has no subjects) and `audience` byte for byte. `trusted` has the resources of
    the issuer, empty if it exists already.
    """
    row, settings = args.row, args.settings
    identity_name = parse_arm_id(managed_identity_of(settings, args.cluster, row)).name
    identity = managedidentity.UserAssignedIdentity(
        f"{name}-identity",
        resource_name_=identity_name,
        resource_group_name=settings.resource_group,
        location=location,
        tags=identity_tags(settings, args.stack_owner),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    previous: list[pulumi.Resource] = [identity, *trusted]
    for subject in row.subjects:
        # Azure rejects concurrent writes to the credentials of one identity.
        credential = managedidentity.FederatedIdentityCredential(
            f"{name}-federated-{subject.word}",
            federated_identity_credential_resource_name=credentials[subject.word],
            resource_name_=identity_name,
            resource_group_name=settings.resource_group,
            issuer=issuer,
            subject=subject.subject,
            audiences=[audience],
            opts=pulumi.ResourceOptions(parent=parent, depends_on=previous),
        )
        previous = [credential]
    for number, grant in enumerate(grants, 1):
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
