"""`idstack rbac`: what gives whoever deploys their rights on the management cluster, to be run by its administrator."""

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
    """Who can be given rights by object id, in Azure's words. Kubernetes knows people by name: give them to a group."""

    GROUP = "Group"
    SERVICE_PRINCIPAL = "ServicePrincipal"


def rbac(
    object_id: Annotated[
        UUID, typer.Argument(help="Object id (no application id) of the Entra group or service principal that deploys.")
    ],
    principal_type: Annotated[
        PrincipalType, typer.Option(case_sensitive=False, help="What the object id is of.")
    ] = PrincipalType.GROUP,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Kubernetes' own role, without asking Azure which kind decides.")
    ] = False,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Print what gives a deployer their rights on the management cluster: a role of Kubernetes, or one of Azure.

    Of Kubernetes a ClusterRole with exactly the verbs that the stack needs and its binding, for `kubectl apply -f -`;
    where Azure RBAC decides on the stack's cluster, the line of `az role assignment create`.
    """
    cluster = None if kubernetes else stack_cluster(Engine(stack))
    if cluster is not None and cluster.has_azure_rbac:
        print(azure_rbac.assignment(azure_rbac.role_for(permissions()), cluster, str(object_id), principal_type))
        return
    who = {"group" if principal_type is PrincipalType.GROUP else "user": str(object_id)}
    print(yaml.safe_dump_all(manifests(**who), sort_keys=False), end="")
