"""The kubeconfigs that AKS gives out, asked of Azure Resource Manager."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, Protocol

from identity.access.kubeconfig import Kubeconfig
from identity.naming import resource_id

_API_VERSION: Final = "2025-09-01"
_TYPE: Final = "Microsoft.ContainerService/managedClusters"


class Arm(Protocol):
    """POSTs an action to a resource and returns the answer; raises for a refusal."""

    def action(self, resource_id: str, verb: str, api_version: str, options: Mapping[str, str]) -> dict[str, Any]: ...


def skeleton(
    arm: Arm, subscription: str, resource_group: str, cluster: str, *, admin: bool = False, public_fqdn: bool = False
) -> Kubeconfig:
    """Server, authority and a user who has yet to sign in; with `admin` one who has, past Entra ID."""
    full_id = resource_id(subscription, resource_group, _TYPE, cluster)
    verb = f"listCluster{'Admin' if admin else 'User'}Credential"
    answer = arm.action(full_id, verb, _API_VERSION, {"serverFqdn": "public"} if public_fqdn else {})
    return decode(answer["kubeconfigs"][0]["value"])


def decode(value: str) -> Kubeconfig:
    """A kubeconfig as AKS answers it, base64; raises MalformedKubeconfig."""
    return Kubeconfig.parse(base64.b64decode(value).decode(), "the kubeconfig that AKS gives out")
