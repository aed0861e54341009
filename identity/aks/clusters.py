"""The kubeconfigs that AKS gives out, asked of Azure Resource Manager."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from identity import resource_types
from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig

if TYPE_CHECKING:
    from identity.azure.client import AzureClient


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
