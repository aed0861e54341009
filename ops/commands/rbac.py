"""`idstack rbac`: the deployer's rights, for an administrator to apply."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from uuid import UUID

import typer

from identity.aks import azure_rbac
from identity.aks.permissions import cluster_wide_manifests, manifests, needed, rights_of
from identity.yaml_text import dump
from ops.access.clients import stack_cluster
from ops.commands.options import DEFAULT_STACK, JsonOption, StackOption
from ops.outputs import azure_rights
from ops.outputs.azure_rights import Purpose
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import settings_of


class PrincipalType(StrEnum):
    """The types of principals that get rights by object id."""

    GROUP = "Group"
    USER = "User"
    SERVICE_PRINCIPAL = "ServicePrincipal"


def rbac(
    object_id: Annotated[
        UUID,
        typer.Argument(help="Object id (not application id) of the group, user or service principal that deploys."),
    ],
    principal_type: Annotated[
        PrincipalType, typer.Option(case_sensitive=False, help="Type of the principal with that object id.")
    ] = PrincipalType.GROUP,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Print Kubernetes' roles, without asking ARM about Azure RBAC.")
    ] = False,
    cluster_wide: Annotated[
        bool, typer.Option("--cluster-wide", help="One role for all namespaces, also of later hosted clusters.")
    ] = False,
    azure: Annotated[
        bool, typer.Option("--azure", help="Print the roles in Azure that the stack's configuration needs.")
    ] = False,
    purpose: Annotated[
        Purpose, typer.Option("--for", case_sensitive=False, help="With --azure: the purpose of the identity.")
    ] = Purpose.DEPLOYER,
    as_json: JsonOption = False,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Print the rights of a deployer: on the management cluster, or with `--azure` in Azure.

    On a management cluster with Azure RBAC, the output is a line of `az role assignment create`. Otherwise it is
    manifests for `kubectl apply -f -`: Roles in the namespaces of the stack's hosted clusters, with exactly the verbs
    that its configuration needs and Secrets by their names, and a ClusterRole for resources without a namespace. With
    `--cluster-wide` there is one ClusterRole. In Azure it is a line of `az role assignment create` for each role and
    scope, including the right to assign roles under a condition.
    """
    if azure and (kubernetes or cluster_wide):
        raise typer.BadParameter("--azure asks about Azure, --kubernetes and --cluster-wide about the cluster")
    if not azure and (as_json or purpose is not Purpose.DEPLOYER):
        raise typer.BadParameter("--for and --json go with --azure")
    settings = settings_of(Engine(stack))
    if azure:
        in_azure = azure_rights.rights(
            settings, purpose, to_people=principal_type is not PrincipalType.SERVICE_PRINCIPAL
        )
        print(in_azure.to_json() if as_json else in_azure.commands(str(object_id), principal_type))
        return
    rights = rights_of(settings)
    if not rights:
        raise CommandError(f"the stack {stack} creates nothing on a management cluster: it needs no rights there")
    cluster = None if kubernetes else stack_cluster(Engine(stack))
    if cluster is not None and cluster.has_azure_rbac:
        role = azure_rbac.role_for(needed(rights))
        print(azure_rbac.assignment(role.guid, cluster.id, str(object_id), principal_type))
        return
    if principal_type is PrincipalType.USER:
        raise CommandError("Kubernetes knows a user by name, not by object id: give the rights to a group of users")
    subject = {"group" if principal_type is PrincipalType.GROUP else "user": str(object_id)}
    printed = cluster_wide_manifests if cluster_wide else manifests
    print(dump(*printed(rights, stack, **subject)), end="")
