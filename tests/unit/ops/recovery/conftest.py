"""A Kubernetes API behind a real socket, finders for it and for the local Azure, and an engine's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from pathlib import Path

import pytest
from kubernetes import client, config

from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.client import AzureClient
from localcloud.testing.arm import ArmWorld
from localcloud.testing.hosts import Certificates, Serve
from localcloud.testing.kubernetes import TOKEN, write_kubeconfig
from localcloud.testing.kubernetes import kubernetes_app as kubernetes
from ops.access.clients import KubernetesObjects
from ops.recovery.orphans import Finders
from tests.unit.ops.recovery.engine_answers import answers

__all__ = ["answers"]


@pytest.fixture
def kubeconfig(world: ArmWorld, serve: Serve, certificates: Certificates, tmp_path: Path) -> Path:
    """Of a Kubernetes API with nothing in it but what every one has."""
    return write_kubeconfig(
        tmp_path / "kubeconfig", serve(kubernetes(world.store, TOKEN, tmp_path)), certificates.ca_file
    )


@pytest.fixture
def official(kubeconfig: Path) -> Iterator[client.ApiClient]:
    """The official client, which puts things there."""
    with config.new_client_from_config(str(kubeconfig)) as opened:
        yield opened


@pytest.fixture
def cluster(kubeconfig: Path) -> Iterator[KubernetesObjects]:
    with ApiServer(Kubeconfig.read(kubeconfig), AksCluster("")) as server:
        yield KubernetesObjects(server)


FindersOf = Callable[..., Finders]


@pytest.fixture
def finders(azure: AzureClient, world: ArmWorld) -> FindersOf:
    """Makes finders for the world's subscription; `taken` are type and id of what the state has."""

    def make(taken: Set[tuple[str, str]] = frozenset(), cluster: KubernetesObjects | None = None) -> Finders:
        return Finders(azure, cluster, world.cloud.subscription_id, taken)

    return make
