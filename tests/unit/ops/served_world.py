"""The local ARM, Graph and Key Vault behind real sockets, for the fixtures of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from identity.clouds import Cloud, LocalEnvironment, local_cloud
from localcloud.azure.arm.api import app as arm
from localcloud.azure.graph.api import app as graph
from localcloud.azure.keyvault.api import app as keyvault
from localcloud.tests.arm_world import ArmWorld, world
from localcloud.tests.hosts import Certificates, Serve
from tests.unit.azure_world import azure, deployer
from tests.unit.ops.stacks import local_environment

__all__ = ["azure", "deployer", "world"]


@pytest.fixture
def cloud(world: ArmWorld, serve: Serve, certificates: Certificates, tmp_path: Path) -> Cloud:
    """The world's services as a client sees them."""
    endpoints = {
        **vars(local_environment(tmp_path, tmp_path / "kubeconfig")),
        "arm_endpoint": serve(arm(world.cloud)),
        "graph_endpoint": serve(graph(world.cloud)),
        "key_vault_endpoint": serve(keyvault(world.cloud)),
        "ca_file": str(certificates.ca_file),
    }
    return local_cloud(LocalEnvironment(**endpoints))
