"""AKS clusters on which Azure role assignments decide ("Azure RBAC for Kubernetes authorization").

Kubernetes' own roles still work there, but the cluster's administrators use Azure, so the fix is a role assignment.
Roles: learn.microsoft.com/azure/role-based-access-control/built-in-roles/containers.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from identity import resource_types
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.permissions import Permission
from identity.naming import parse_arm_id
from identity.roles import AKS_RBAC_ADMIN_ROLE, AKS_RBAC_CLUSTER_ADMIN_ROLE, Role

if TYPE_CHECKING:
    from identity.azure.client import AzureClient


# The end of each refusal of AKS's authorizer (kubeguard/guard `authz/providers/azure/rbac/checkaccessreqhelper.go`).
DENIAL: Final = "Update role assignment to allow access"

_READ: Final = frozenset({"get", "list", "watch"})

CREATING: Final = "Creating"
DELETING: Final = "Deleting"
STOPPED: Final = "Stopped"
# The last operation on the cluster failed; it may run as before all the same.
FAILED: Final = frozenset({"Failed", "Canceled"})


@dataclass(frozen=True)
class AksCluster:
    """A cluster as ARM knows it, whether Azure role assignments decide on it, and its `state`.

    That is ARM's provisioningState, or `Stopped` for one that is switched off. While it is `Updating` it runs.
    """

    id: str
    has_azure_rbac: bool = False
    state: str = "Succeeded"

    @classmethod
    def of(cls, cluster_id: str, properties: Mapping[str, Any]) -> Self:
        """The cluster whose properties ARM answered."""
        is_stopped = (properties.get("powerState") or {}).get("code") == STOPPED
        return cls(
            cluster_id,
            bool((properties.get("aadProfile") or {}).get("enableAzureRBAC")),
            STOPPED if is_stopped else properties.get("provisioningState") or "Succeeded",
        )

    @property
    def is_off(self) -> bool:
        """Whether its API server answers nobody."""
        return self.state in (DELETING, STOPPED)

    @property
    def explanation(self) -> str:
        """What its state explains, and the fix; empty for a normal state."""
        if self.state == "Succeeded":
            return ""
        cluster = parse_arm_id(self.id)
        where = shlex.join(["--resource-group", cluster.resource_group, "--name", cluster.name])
        if self.state == DELETING:
            return f'"{cluster.name}" is being deleted: wait until that has ended (`az aks wait {where} --deleted`)'
        if self.state == STOPPED:
            return f'"{cluster.name}" is stopped: `az aks start {where}` starts it'
        if self.state in FAILED:
            return f'the last operation on "{cluster.name}" is {self.state}: `az aks update {where}` repeats it'
        end = "--created" if self.state == CREATING else "--updated"
        return f'"{cluster.name}" is {self.state}: wait until that has ended (`az aks wait {where} {end}`)'


def explained(error: Exception, aks: AksCluster | None) -> str:
    """A failed request to the cluster's API server, and what the cluster's state explains of it."""
    return "; ".join(filter(None, [str(error), aks.explanation if aks else ""]))


def role_for(missing: Collection[Permission]) -> Role:
    """The narrower one of the two roles that grant every kind of object, custom resources included.

    Only Cluster Admin may write and delete namespaces. RBAC Reader and Writer have no custom resources.
    """
    if any(
        (permission.group, permission.resource) == ("", "namespaces") and permission.verb not in _READ
        for permission in missing
    ):
        return AKS_RBAC_CLUSTER_ADMIN_ROLE
    return AKS_RBAC_ADMIN_ROLE


def assignment(role: str, scope: str, object_id: str, principal_type: str, *more: str) -> str:
    """The Azure CLI's command that assigns a role (GUID, or name of a custom one) at a scope to a principal."""
    assignee = ["--assignee-object-id", object_id, "--assignee-principal-type", principal_type]
    return shlex.join(["az", "role", "assignment", "create", "--role", role, "--scope", scope, *assignee, *more])


def look_at(azure: AzureClient, full_id: str) -> AksCluster | None:
    """A cluster as ARM describes it; None if there is none. Raises AzureRefusedError."""
    answer = azure.resource(full_id, resource_types.CONTAINER_SERVICE_API)
    return None if answer is None else AksCluster.of(full_id, answer["properties"])


def skeleton(azure: AzureClient, full_id: str, *, admin: bool = False, public_fqdn: bool = False) -> Kubeconfig:
    """Server, authority and a user without a sign-in; with `admin` the administrators' static credential.

    Raises AzureRefusedError, and MalformedKubeconfigError.
    """
    verb = f"listCluster{'Admin' if admin else 'User'}Credential"
    # The API's spelling; in SDKs it is serverFqdn.
    options = {"server-fqdn": "public"} if public_fqdn else {}
    answer = azure.action(full_id, verb, resource_types.CONTAINER_SERVICE_API, options)
    return decode(answer["kubeconfigs"][0]["value"])


def decode(value: str) -> Kubeconfig:
    """Decode a kubeconfig of AKS from base64; raises MalformedKubeconfigError."""
    return Kubeconfig.parse(base64.b64decode(value).decode(), "the kubeconfig that AKS gives out")
