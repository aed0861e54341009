"""A local Azure and a Kubernetes API behind real sockets, and what looks things up in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken, TokenCredential
from kubernetes import client, config

from identity.clouds import Cloud, LocalEnvironment, local_cloud
from localcloud.azure.arm.api import app as arm
from localcloud.azure.graph.api import app as graph
from localcloud.azure.graph.permissions import WRITE_OWNED
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.kubernetes.api import app as kubernetes
from ops.access.azure import AzureClient
from ops.recovery.finders import Finders
from ops.recovery.kubernetes_objects import KubernetesObjects, connected
from tests.unit.hosts import Certificates, Serve
from tests.unit.localcloud.arm_world import ArmWorld, world
from tests.unit.localcloud.kubernetes_world import TOKEN, write_kubeconfig
from tests.unit.ops.world import local_environment

__all__ = ["world"]


class PrincipalCredential(TokenCredential):
    """The tokens of a service principal of the test's own world."""

    def __init__(self, world: ArmWorld, principal: ServicePrincipal) -> None:
        self._world = world
        self._principal = principal

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        audience = scopes[0].removesuffix("/.default")
        return AccessToken(self._world.cloud.tokens.issue(self._principal, audience), 0)


@pytest.fixture
def cloud(world: ArmWorld, serve: Serve, certificates: Certificates, tmp_path: Path) -> Cloud:
    """The world's ARM and Graph as a client sees them."""
    endpoints = {
        **vars(local_environment(tmp_path, tmp_path / "kubeconfig")),
        "arm_endpoint": serve(arm(world.cloud)),
        "graph_endpoint": serve(graph(world.cloud)),
        "ca_file": str(certificates.ca_file),
    }
    return local_cloud(LocalEnvironment(**endpoints))


@pytest.fixture
def deployer(world: ArmWorld) -> ServicePrincipal:
    """The world's deployer, who may also manage the applications it owns."""
    world.cloud.directory.grant(world.deployer.object_id, WRITE_OWNED)
    granted = world.cloud.directory.service_principal(world.deployer.object_id)
    assert granted is not None
    return granted


@pytest.fixture
def azure(
    world: ArmWorld, cloud: Cloud, deployer: ServicePrincipal, certificates: Certificates
) -> Iterator[AzureClient]:
    """Both, read by the deployer."""
    with AzureClient(cloud, PrincipalCredential(world, deployer), str(certificates.ca_file)) as opened:
        yield opened


@pytest.fixture
def kubeconfig(world: ArmWorld, serve: Serve, certificates: Certificates, tmp_path: Path) -> Path:
    """Of a Kubernetes API with nothing in it but what every one has."""
    return write_kubeconfig(tmp_path / "kubeconfig", serve(kubernetes(world.store, TOKEN)), certificates.ca_file)


@pytest.fixture
def official(kubeconfig: Path) -> Iterator[client.ApiClient]:
    """The official client, which puts things there."""
    with config.new_client_from_config(str(kubeconfig)) as opened:
        yield opened


@pytest.fixture
def cluster(kubeconfig: Path) -> Iterator[KubernetesObjects]:
    with connected(kubeconfig, None) as opened:
        yield opened


FindersOf = Callable[..., Finders]


@pytest.fixture
def finders(azure: AzureClient, world: ArmWorld) -> FindersOf:
    """Makes finders for the world's subscription; `taken` are type and id of what the state has."""

    def make(taken: Set[tuple[str, str]] = frozenset(), cluster: KubernetesObjects | None = None) -> Finders:
        return Finders(azure, cluster, world.cloud.subscription_id, taken)

    return make
