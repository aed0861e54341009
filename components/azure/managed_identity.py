"""User-assigned managed identities: of the data plane, and those of components that few clusters need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import pulumi
from pulumi_azure_native import managedidentity

from components.azure.context import ClusterContext
from components.azure.providers import identity_tags
from components.azure.role_grants import grant_at, grant_role
from identity import resource_types
from identity.catalogue import FEDERATED_AUDIENCE, MANAGEMENT_AUDIENCE
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity, RoleGrant
from identity.naming import federated_credential_name
from identity.roles import MANAGED_IDENTITY_OPERATOR_ROLE
from identity.settings import Settings

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


def managed_identity(
    name: str,
    parent: pulumi.Resource,
    context: ClusterContext,
    row: DataPlaneIdentity | OptionalManagedIdentity,
    *,
    location: str,
    grants: Sequence[RoleGrant],
    credentials: Mapping[str, str],
    issuer: str | None,
    audience: str,
    trusted: Sequence[pulumi.Resource] = (),
) -> AssignedIdentity:
    """Register the identity, its credentials and its roles under `parent`; their logical names begin with `name`.

    Service accounts sign in by the federated credentials, whose names are in `credentials` by the subject's key. Entra
    ID compares `issuer` (None if the row has no subjects) and `audience` byte for byte. `trusted` has the resources of
    the issuer, empty if it exists already.
    """
    settings = context.settings
    identity_name = context.cluster.identity_names[row.field]
    identity = AssignedIdentity(
        f"{name}-identity", parent, settings, context.stack_owner, resource_name_=identity_name, location=location
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
        roles = f"{name}-roles" if number == 1 else f"{name}-roles-{number}"
        grant_role(roles, parent, context, row.component, grant, identity.principal_id)
    return identity


class DataPlaneIdentityComponent(pulumi.ComponentResource):
    """A managed identity, its federated credentials and its role, named as `hypershift create iam azure` names them,
    unless the settings name objects that existed before.

    `issuer` has the resources that publish the cluster's keys, empty if they exist already. Outputs: `client_id` and
    `principal_id` (Output[str]).
    """

    def __init__(
        self,
        name: str,
        context: ClusterContext,
        row: DataPlaneIdentity,
        issuer: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(resource_types.DATA_PLANE_IDENTITY, name, None, opts)
        settings, cluster = context.settings, context.cluster
        names = cluster.federated_identity(row.field)
        identity = managed_identity(
            name,
            self,
            context,
            row,
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
            trusted=issuer,
        )
        self.client_id = identity.client_id
        self.principal_id = identity.principal_id
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id})


class OptionalIdentityComponent(pulumi.ComponentResource):
    """A managed identity, its role, its federated credentials, and the right of another identity to attach it to nodes.

    Without that right the cluster API provider cannot create a node (api/hypershift/v1beta1/azure.go:581-584).
    `attacher` is that identity: HyperShift's RBAC key and the object id of its service principal; None without nodes.
    Outputs: `client_id` (Output[str]) and `resource_id` (str), known before it exists.
    """

    def __init__(
        self,
        name: str,
        context: ClusterContext,
        row: OptionalManagedIdentity,
        attacher: tuple[str, pulumi.Input[str]] | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(resource_types.OPTIONAL_IDENTITY, name, None, opts)
        settings, identity_name = context.settings, context.cluster.identity_names[row.field]
        self.resource_id = settings.identity_id(identity_name)
        identity = managed_identity(
            name,
            self,
            context,
            row,
            location=settings.location,
            grants=row.grants,
            credentials={subject.word: f"{identity_name}-{subject.suffix}" for subject in row.subjects},
            issuer=context.cluster.management_issuer_url,
            audience=MANAGEMENT_AUDIENCE,
        )
        if attacher is not None:
            component, principal_id = attacher
            grant_at(
                f"{name}-attacher-roles",
                self,
                context,
                component,
                MANAGED_IDENTITY_OPERATOR_ROLE,
                {"identity": self.resource_id},
                principal_id,
                after=[identity.resource],
            )
        self.client_id = identity.client_id
        self.register_outputs({"client_id": self.client_id, "resource_id": self.resource_id})
