"""AKS clusters on which Azure role assignments decide ("Azure RBAC for Kubernetes authorization").

Kubernetes' own roles go on working there, but whoever administers such a cluster does it in Azure: what helps is a role
assignment. Roles: learn.microsoft.com/azure/role-based-access-control/built-in-roles/containers.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from identity.access.permissions import Permission
from identity.roles import AKS_RBAC_ADMIN_ROLE, AKS_RBAC_CLUSTER_ADMIN_ROLE, Role

# How each refusal of AKS's authorizer ends (kubeguard/guard `authz/providers/azure/rbac/checkaccessreqhelper.go`).
DENIAL: Final = "Update role assignment to allow access"

_READ: Final = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class AksCluster:
    """A cluster as ARM knows it, and whether Azure role assignments decide on it."""

    id: str
    has_azure_rbac: bool = False

    @classmethod
    def of(cls, cluster_id: str, properties: Mapping[str, Any]) -> Self:
        """The cluster whose properties ARM answered."""
        return cls(cluster_id, bool((properties.get("aadProfile") or {}).get("enableAzureRBAC")))


def role_for(missing: Collection[Permission]) -> Role:
    """The narrower one of the two roles that grant every kind of object, custom resources included.

    Only Cluster Admin may write and delete namespaces. RBAC Reader and Writer have no custom resources.
    """
    if any((each.group, each.resource) == ("", "namespaces") and each.verb not in _READ for each in missing):
        return AKS_RBAC_CLUSTER_ADMIN_ROLE
    return AKS_RBAC_ADMIN_ROLE


def assignment(role: Role, cluster: AksCluster, object_id: str, principal_type: str) -> str:
    """The line of the Azure CLI that gives the role on the cluster to somebody."""
    return shlex.join(
        [
            *("az", "role", "assignment", "create", "--role", role.guid, "--scope", cluster.id),
            *("--assignee-object-id", object_id, "--assignee-principal-type", principal_type),
        ]
    )
