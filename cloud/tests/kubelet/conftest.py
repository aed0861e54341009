"""One node: vault, metadata service and API over sockets, and the kubelet on top of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.azure.imds.api import app as imds_app
from localcloud.core.clouds import LocalEnvironment
from localcloud.testing.arm import ArmWorld
from localcloud.testing.hosts import Serve
from localcloud.testing.kubernetes import RunningApi, local_environment
from tests.kubelet_world import Azure, ClusterApi, Kubelet, cluster_of, running


@pytest.fixture
def node_azure(world: ArmWorld) -> Azure:
    """Azure with the stack's vault."""
    world.create_vault()
    return Azure(world)


@pytest.fixture
def environment(api: RunningApi, world: ArmWorld, serve: Serve, serve_plain: Serve, tmp_path: Path) -> LocalEnvironment:
    """Where the node's services answer."""
    return local_environment(
        api,
        tmp_path / "state",
        key_vault_endpoint=serve(world.keyvault),
        blob_endpoint="https://127.0.0.1:1",
        imds_endpoint=serve_plain(imds_app(world.cloud)),
    )


@pytest.fixture
def cluster(environment: LocalEnvironment) -> Iterator[ClusterApi]:
    """The API, with a namespace for the test."""
    with cluster_of(environment) as made:
        yield made


@pytest.fixture
def kubelet(environment: LocalEnvironment) -> Iterator[Kubelet]:
    """A running kubelet."""
    with running(environment) as made:
        yield made
