"""Role assignments, named as HyperShift's own CLI names them, so that each tool recognizes the other's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pulumi
from pulumi_azure_native import authorization

from components.azure.context import ClusterContext
from components.azure.providers import Deployer
from identity.catalogue_rows import RoleGrant
from identity.naming import role_assignment_name, role_definition_id
from identity.roles import Role
from identity.settings.scopes import outermost, scope_ids


@dataclass(frozen=True, kw_only=True)
class RoleGrantsArgs:
    """Inputs of `RoleGrants`. `scopes` maps a short word, part of the resource's name, to the scope's ARM id.

    `deployer` is set if the principal is the identity that runs the stack. That of the first run keeps the role: a
    preview by another must not show a change.
    """

    infra_id: str
    component: str  # HyperShift's RBAC key
    role: Role
    scopes: Mapping[str, str]
    subscription_id: str
    principal_id: pulumi.Input[str]  # object id of the service principal
    deployer: Deployer | None = None


class RoleGrants(pulumi.ComponentResource):
    """One role for one principal at each of several scopes.

    The assignments depend on the principal, so they are deleted before it: Azure keeps an assignment whose principal
    is gone, and its name stays taken.
    """

    def __init__(self, name: str, args: RoleGrantsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:RoleGrants", name, None, opts)
        for word, scope in outermost(args.scopes).items():
            authorization.RoleAssignment(
                f"{name}-{word}",
                role_assignment_name=role_assignment_name(args.infra_id, args.component, scope),
                scope=scope,
                role_definition_id=role_definition_id(args.subscription_id, args.role.guid),
                principal_id=args.principal_id,
                # Azure looks up an unknown type, which fails for a new principal; a plain None the SDK makes "User".
                principal_type=authorization.PrincipalType.SERVICE_PRINCIPAL
                if args.deployer is None or args.deployer.is_service_principal
                else cast("pulumi.Output[str]", pulumi.Output.from_input(None)),
                opts=pulumi.ResourceOptions(
                    parent=self,
                    # The provider would update the role in place, which Azure refuses. The name contains neither
                    # role nor principal, so the old assignment must be deleted before its replacement.
                    replace_on_changes=["role_definition_id"],
                    delete_before_replace=True,
                    ignore_changes=None if args.deployer is None else ["principal_id", "principal_type"],
                ),
            )
        self.register_outputs({})


def grant_role(
    name: str,
    parent: pulumi.Resource,
    context: ClusterContext,
    component: str,
    grant: RoleGrant,
    principal_id: pulumi.Input[str],
) -> RoleGrants:
    """The role of an identity of the cluster at its scopes; `component` is HyperShift's RBAC key."""
    scopes = scope_ids(context.settings, context.cluster, grant)
    return grant_at(name, parent, context, component, grant.role, scopes, principal_id, after=context.infrastructure)


def grant_at(
    name: str,
    parent: pulumi.Resource,
    context: ClusterContext,
    component: str,
    role: Role,
    scopes: Mapping[str, str],
    principal_id: pulumi.Input[str],
    *,
    after: Sequence[pulumi.Resource],
) -> RoleGrants:
    """A role at these scopes; `after` has the resources that they are in."""
    args = RoleGrantsArgs(
        infra_id=context.cluster.infra_id,
        component=component,
        role=role,
        scopes=scopes,
        subscription_id=context.settings.subscription_id,
        principal_id=principal_id,
    )
    return RoleGrants(name, args, pulumi.ResourceOptions(parent=parent, depends_on=list(after) or None))
