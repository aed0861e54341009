"""Managed identities that few hosted clusters need: of nodes, or of service accounts of the management cluster."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from components.azure.managed_identity import ManagedIdentityArgs, managed_identity
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from identity import resource_types
from identity.catalogue import MANAGEMENT_AUDIENCE
from identity.catalogue_rows import OptionalManagedIdentity
from identity.naming import parse_arm_id
from identity.roles import MANAGED_IDENTITY_OPERATOR_ROLE
from identity.settings.schema.managed_identities import managed_identity_of


@dataclass(frozen=True, kw_only=True)
class AttacherArgs:
    """The control-plane identity that attaches a managed identity to nodes."""

    component: str  # HyperShift's RBAC key
    principal_id: pulumi.Input[str]  # object id of its service principal


@dataclass(frozen=True, kw_only=True)
class OptionalIdentityArgs(ManagedIdentityArgs[OptionalManagedIdentity]):
    """Inputs of `OptionalIdentityComponent`. `attacher` is None for an identity without nodes."""

    attacher: AttacherArgs | None


class OptionalIdentityComponent(pulumi.ComponentResource):
    """A managed identity, its role, its federated credentials, and the right of another identity to attach it to nodes.

    Without that right the cluster API provider cannot create a node (api/hypershift/v1beta1/azure.go:581-584). Outputs:
    `client_id` (Output[str]) and `resource_id` (str), known before it exists.
    """

    def __init__(self, name: str, args: OptionalIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(resource_types.OPTIONAL_IDENTITY, name, None, opts)
        row, settings, cluster = args.row, args.settings, args.cluster
        self.resource_id = managed_identity_of(settings, cluster, row)
        identity_name = parse_arm_id(self.resource_id).name
        identity = managed_identity(
            name,
            self,
            args,
            location=settings.location,
            grants=row.grants,
            credentials={subject.word: f"{identity_name}-{subject.suffix}" for subject in row.subjects},
            issuer=cluster.management_issuer_url,
            audience=MANAGEMENT_AUDIENCE,
        )
        if args.attacher is not None:
            RoleGrants(
                f"{name}-attacher-roles",
                RoleGrantsArgs(
                    infra_id=cluster.infra_id,
                    component=args.attacher.component,
                    role=MANAGED_IDENTITY_OPERATOR_ROLE,
                    scopes={"identity": self.resource_id},
                    subscription_id=settings.subscription_id,
                    principal_id=args.attacher.principal_id,
                ),
                pulumi.ResourceOptions(parent=self, depends_on=[identity]),
            )
        self.client_id: pulumi.Output[str] = identity.client_id
        self.register_outputs({"client_id": self.client_id, "resource_id": self.resource_id})
