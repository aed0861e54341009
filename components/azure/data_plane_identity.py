"""Managed identities of the guest cluster's own components, used through federated credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from identity import catalogue_rows
from identity.catalogue import FEDERATED_AUDIENCE
from identity.naming import data_plane_identity_name


@dataclass(frozen=True, kw_only=True)
class DataPlaneIdentityArgs:
    """Inputs of `DataPlaneIdentityComponent`. Entra ID compares the hosted cluster's `issuer_url` byte for byte."""

    row: catalogue_rows.DataPlaneIdentity
    cluster: str
    infra_id: str
    issuer_url: str
    subscription_id: str
    resource_group: str
    location: str
    scopes: Mapping[str, str]
    tags: Mapping[str, str]


class DataPlaneIdentityComponent(pulumi.ComponentResource):
    """A managed identity, its federated credentials and its role, named as `hypershift create iam azure` names them.

    Outputs: `client_id` and `principal_id` (Output[str]).
    """

    def __init__(self, name: str, args: DataPlaneIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:DataPlaneIdentity", name, None, opts)
        stem = f"{args.cluster}-{args.row.name}"
        identity_name = data_plane_identity_name(args.cluster, args.row.name, args.infra_id)
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=identity_name,
            resource_group_name=args.resource_group,
            location=args.location,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        previous: pulumi.Resource = identity
        for subject in args.row.subjects:
            # Azure rejects concurrent writes to the credentials of one identity.
            previous = managedidentity.FederatedIdentityCredential(
                f"{name}-federated-{subject.suffix}",
                federated_identity_credential_resource_name=f"{stem}-fed-id-{subject.suffix}",
                resource_name_=identity_name,
                resource_group_name=args.resource_group,
                issuer=args.issuer_url,
                subject=subject.subject,
                audiences=[FEDERATED_AUDIENCE],
                opts=pulumi.ResourceOptions(parent=self, depends_on=[previous]),
            )
        RoleGrants(
            f"{name}-roles",
            RoleGrantsArgs(
                infra_id=args.infra_id,
                component=args.row.component,
                role=args.row.grant.role,
                scopes=args.scopes,
                subscription_id=args.subscription_id,
                principal_id=identity.principal_id,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self.client_id: pulumi.Output[str] = identity.client_id
        self.principal_id: pulumi.Output[str] = identity.principal_id
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id})
