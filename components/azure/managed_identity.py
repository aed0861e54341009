"""User-assigned managed identities: of the data plane, and those of components that few clusters need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.providers import identity_tags
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from identity import resource_types
from identity.catalogue import FEDERATED_AUDIENCE, MANAGEMENT_AUDIENCE
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity, RoleGrant
from identity.naming import federated_credential_name, parse_arm_id
from identity.roles import MANAGED_IDENTITY_OPERATOR_ROLE
from identity.settings import HostedClusterSettings, Settings
from identity.settings.schema.model import managed_identity_of
from identity.settings.scopes import scope_ids

Row = TypeVar("Row", DataPlaneIdentity, OptionalManagedIdentity)

_Read: TypeAlias = managedidentity.GetUserAssignedIdentityResult


class AssignedIdentity:
    """A managed identity of the stack, and the ids that Azure gives it.

    An update keeps both ids, but in its preview azure-native knows neither: what depends on them would be shown as
    changed or replaced. They are read from Azure then, unless the identity is new or replaced, or cannot be read.
    """

    def __init__(
        self,
        name: str,
        parent: pulumi.Resource,
        settings: Settings,
        stack_owner: pulumi.Input[str] | None,
        **inputs: str,
    ) -> None:
        """`inputs` are the identity's `resource_name_` and `location`."""
        self._parent, self._group = parent, settings.resource_group
        self.resource = managedidentity.UserAssignedIdentity(
            name,
            resource_group_name=settings.resource_group,
            tags=identity_tags(settings, stack_owner),
            opts=pulumi.ResourceOptions(parent=parent),
            **inputs,
        )
        self.client_id = self._kept(self.resource.client_id, lambda read: read.client_id)
        self.principal_id = self._kept(self.resource.principal_id, lambda read: read.principal_id)

    def _kept(self, own: pulumi.Output[str], of: Callable[[_Read], str]) -> pulumi.Output[str]:
        def known(value: str) -> pulumi.Input[str]:
            return self._read.apply(of).recover(lambda _: own) if pulumi.contains_unknowns(value) else value

        return own.apply(known, run_with_unknowns=True)

    @cached_property
    def _read(self) -> pulumi.Output[_Read]:
        # A new or replaced identity has no id in a preview.
        name = self.resource.id.apply(lambda arm_id: arm_id.rpartition("/")[2])
        return managedidentity.get_user_assigned_identity_output(
            resource_group_name=self._group, resource_name=name, opts=pulumi.InvokeOptions(parent=self._parent)
        )


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
) -> AssignedIdentity:
    """Register the identity, its credentials and its roles under `parent`; their logical names begin with `name`.

    Service accounts sign in by the federated credentials, whose names are in `credentials` by the subject's word. Entra
    ID compares `issuer` (None if the row has no subjects) and `audience` byte for byte. `trusted` has the resources of
    the issuer, empty if it exists already.
    """
    row, settings = args.row, args.settings
    identity_name = parse_arm_id(managed_identity_of(settings, args.cluster, row)).name
    identity = AssignedIdentity(
        f"{name}-identity", parent, settings, args.stack_owner, resource_name_=identity_name, location=location
    )
    previous: list[pulumi.Resource] = [identity.resource, *trusted]
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


@dataclass(frozen=True, kw_only=True)
class DataPlaneIdentityArgs(ManagedIdentityArgs[DataPlaneIdentity]):
    """Inputs of `DataPlaneIdentityComponent`.

    `issuer` has the resources that publish the cluster's keys, empty if they exist already.
    """

    issuer: Sequence[pulumi.Resource] = ()


class DataPlaneIdentityComponent(pulumi.ComponentResource):
    """A managed identity, its federated credentials and its role, named as `hypershift create iam azure` names them,
    unless the settings name objects that existed before.

    Outputs: `client_id` and `principal_id` (Output[str]).
    """

    def __init__(self, name: str, args: DataPlaneIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(resource_types.DATA_PLANE_IDENTITY, name, None, opts)
        row, settings, cluster = args.row, args.settings, args.cluster
        names = cluster.federated_identity(row.field)
        identity = managed_identity(
            name,
            self,
            args,
            location=names.location or settings.location,
            grants=[row.grant(settings.roles)],
            credentials={
                subject.word: names.federated_credentials.get(
                    subject.word, federated_credential_name(cluster.name, row.credential_stem, subject.suffix)
                )
                for subject in row.subjects
            },
            issuer=cluster.issuer_url,
            audience=FEDERATED_AUDIENCE,
            trusted=args.issuer,
        )
        self.client_id = identity.client_id
        self.principal_id = identity.principal_id
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id})


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
                pulumi.ResourceOptions(parent=self, depends_on=[identity.resource]),
            )
        self.client_id = identity.client_id
        self.register_outputs({"client_id": self.client_id, "resource_id": self.resource_id})
