"""`idstack rbac`: what gives the deployer its rights on the management cluster, for an administrator to apply."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from uuid import UUID

import typer
import yaml

from identity.access import azure_rbac
from identity.access.permissions import manifests, permissions
from ops.access.management_cluster import stack_cluster
from ops.commands.options import DEFAULT_STACK, StackOption
from ops.stack.engine import Engine


class PrincipalType(StrEnum):
    """The principals that get rights by object id, in Azure's words.

    Users are left out: Kubernetes knows them by name and not by object id. Give the rights to a group of theirs.
    """

    GROUP = "Group"
    SERVICE_PRINCIPAL = "ServicePrincipal"


def rbac(
    object_id: Annotated[
        UUID,
        typer.Argument(help="Object id (not application id) of the Entra group or service principal that deploys."),
    ],
    principal_type: Annotated[
        PrincipalType, typer.Option(case_sensitive=False, help="Type of the principal with that object id.")
    ] = PrincipalType.GROUP,
    kubernetes: Annotated[
        bool,
        typer.Option("--kubernetes", help="Print Kubernetes' role, without asking ARM which kind decides."),
    ] = False,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Print what gives a deployer its rights on the management cluster: a role of Kubernetes, or one of Azure.

    If Azure RBAC decides on the stack's cluster, it is the line of `az role assignment create`. Otherwise it is a
    ClusterRole with exactly the verbs that the stack needs, and its binding, for `kubectl apply -f -`.
    """
    cluster = None if kubernetes else stack_cluster(Engine(stack))
    if cluster is not None and cluster.has_azure_rbac:
        print(azure_rbac.assignment(azure_rbac.role_for(permissions()), cluster, str(object_id), principal_type))
        return
    who = {"group" if principal_type is PrincipalType.GROUP else "user": str(object_id)}
    print(yaml.safe_dump_all(manifests(**who), sort_keys=False), end="")
