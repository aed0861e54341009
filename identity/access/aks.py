"""The kubeconfigs that AKS gives out, asked of Azure Resource Manager."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, Protocol

from identity import resource_types
from identity.access.azure_rbac import AksCluster
from identity.access.kubeconfig import Kubeconfig
from identity.naming import resource_id

_TYPE: Final = "Microsoft.ContainerService/managedClusters"


class Arm(Protocol):
    """Reads resources, and POSTs actions to them; raises for a refusal. An absent resource is None."""

    def resource(self, resource_id: str, api_version: str) -> dict[str, Any] | None: ...

    def action(self, resource_id: str, verb: str, api_version: str, options: Mapping[str, str]) -> dict[str, Any]: ...


def cluster_id(subscription: str, resource_group: str, cluster: str) -> str:
    """ARM id of an AKS cluster."""
    return resource_id(subscription, resource_group, _TYPE, cluster)


def look_at(arm: Arm, full_id: str) -> AksCluster | None:
    """A cluster as ARM describes it; None if there is none."""
    found = arm.resource(full_id, resource_types.CONTAINER_SERVICE_API)
    return None if found is None else AksCluster.of(full_id, found["properties"])


def skeleton(arm: Arm, full_id: str, *, admin: bool = False, public_fqdn: bool = False) -> Kubeconfig:
    """Server, authority and a user who has yet to sign in; with `admin` one who has, past Entra ID."""
    verb = f"listCluster{'Admin' if admin else 'User'}Credential"
    # Of the API; SDKs spell it serverFqdn.
    answer = arm.action(
        full_id, verb, resource_types.CONTAINER_SERVICE_API, {"server-fqdn": "public"} if public_fqdn else {}
    )
    return decode(answer["kubeconfigs"][0]["value"])


def decode(value: str) -> Kubeconfig:
    """A kubeconfig as AKS answers it, base64; raises MalformedKubeconfigError."""
    return Kubeconfig.parse(base64.b64decode(value).decode(), "the kubeconfig that AKS gives out")
