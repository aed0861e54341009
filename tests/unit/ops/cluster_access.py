"""The management cluster of a stack as the commands reach it: an API server of the test's own."""

from __future__ import annotations

import base64

from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.legacy_login import LegacyLogin
from ops.access.clients import StackAccess
from tests.unit.access_world import TOKEN, skeleton

CLUSTER = "/subscriptions/s/resourceGroups/aks-dev/providers/Microsoft.ContainerService/managedClusters/aks-mgmt-dev"


def access_to(server: str) -> StackAccess:
    """A sign-in that needs no program: the user of the kubeconfig has a token."""
    found = Kubeconfig.parse(base64.b64decode(skeleton(server)).decode(), "test")
    kubeconfig = found.only(found.chosen(), user={"token": TOKEN})
    return StackAccess(kubeconfig, LegacyLogin(), AksCluster(CLUSTER))
