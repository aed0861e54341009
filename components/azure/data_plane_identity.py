"""Managed identities of the guest cluster's own components, used through federated credentials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from components.azure.scopes import scope_ids
from identity.catalogue import FEDERATED_AUDIENCE
from identity.catalogue_rows import DataPlaneIdentity
from identity.naming import data_plane_identity_name
from identity.settings import HostedClusterSettings, Settings


@dataclass(frozen=True, kw_only=True)
class DataPlaneIdentityArgs:
    """Inputs of `DataPlaneIdentityComponent`.

    `infrastructure` is what the role's scopes are in, empty if it exists already.
    """

    row: DataPlaneIdentity
    settings: Settings
    cluster: HostedClusterSettings
    infrastructure: Sequence[pulumi.Resource] = ()


class DataPlaneIdentityComponent(pulumi.ComponentResource):
    """A managed identity, its federated credentials and its role, named as `hypershift create iam azure` names them.

    Outputs: `client_id` and `principal_id` (Output[str]).
    """

    def __init__(self, name: str, args: DataPlaneIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:DataPlaneIdentity", name, None, opts)
        row, settings, cluster = args.row, args.settings, args.cluster
        stem = f"{cluster.name}-{row.name}"
        identity_name = data_plane_identity_name(cluster.name, row.name, cluster.infra_id)
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=identity_name,
            resource_group_name=settings.resource_group,
            location=settings.location,
            tags=settings.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        previous: pulumi.Resource = identity
        for subject in row.subjects:
            # Azure rejects concurrent writes to the credentials of one identity.
            previous = managedidentity.FederatedIdentityCredential(
                f"{name}-federated-{subject.suffix}",
                federated_identity_credential_resource_name=f"{stem}-fed-id-{subject.suffix}",
                resource_name_=identity_name,
                resource_group_name=settings.resource_group,
                # Entra ID compares it byte for byte.
                issuer=cluster.issuer_url,
                subject=subject.subject,
                audiences=[FEDERATED_AUDIENCE],
                opts=pulumi.ResourceOptions(parent=self, depends_on=[previous]),
            )
        RoleGrants(
            f"{name}-roles",
            RoleGrantsArgs(
                infra_id=cluster.infra_id,
                component=row.component,
                role=row.grant.role,
                scopes=scope_ids(settings, cluster, row.grant),
                subscription_id=settings.subscription_id,
                principal_id=identity.principal_id,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=list(args.infrastructure) or None),
        )
        self.client_id: pulumi.Output[str] = identity.client_id
        self.principal_id: pulumi.Output[str] = identity.principal_id
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id})
