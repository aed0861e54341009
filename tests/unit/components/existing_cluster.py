"""The stack with an AKS cluster that exists already, and that it reaches by itself."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.unit.access_world import TOKEN, FakeApiServer, skeleton
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import lookups

USER = "azure-native:containerservice:listManagedClusterUserCredentials"
ADMIN = "azure-native:containerservice:listManagedClusterAdminCredentials"
CLUSTER: dict[str, Any] = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev"}


class ExistingClusterScenario:
    """The stack with a cluster that it reaches by itself."""

    def __init__(self, run: Program, api: FakeApiServer, server: str) -> None:
        self._run = run
        self.api = api
        self.answers: dict[str, Any] = {
            **lookups(),
            USER: {"kubeconfigs": [{"name": "clusterUser", "value": skeleton(server)}]},
            ADMIN: {"kubeconfigs": [{"name": "clusterAdmin", "value": skeleton(server, change=_administrator)}]},
        }

    def run(
        self, options: Any = None, changes: Mapping[str, Any] = MappingProxyType({}), **access: Any
    ) -> RecordingMonitor:
        cluster = {**CLUSTER, **({"access": access} if access else {})}
        configuration = {"managementCluster": cluster, **changes}
        return self._run(invokes=self.answers, options=options, lookups_only=True, **configuration)


def _administrator(document: dict[str, Any]) -> None:
    document["users"][0]["user"] = {"token": TOKEN}


def cluster_answer(**profile: Any) -> dict[str, Any]:
    """What ARM answers of a cluster with this add-on."""
    return {"nodeResourceGroup": "MC_aks", "addonProfiles": {"azureKeyvaultSecretsProvider": profile}}
