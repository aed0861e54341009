"""A local ARM, Graph and Key Vault behind real sockets, and the client of the deployer, for several folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken, TokenCredential

from identity.azure.client import AzureClient
from identity.clouds import Cloud, LocalEnvironment, local_cloud
from localcloud.testing.arm import ArmWorld
from localcloud.testing.azure import WRITE_OWNED, ServicePrincipal
from localcloud.testing.azure import arm_app as arm
from localcloud.testing.azure import graph_app as graph
from localcloud.testing.azure import keyvault_app as keyvault
from localcloud.testing.hosts import Certificates, Serve
from tests.unit.ops.stacks import local_environment


class IssuedTokens(TokenCredential):
    """The tokens of a service principal of the test's own world."""

    def __init__(self, world: ArmWorld, principal: ServicePrincipal) -> None:
        self._world = world
        self._principal = principal

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        audience = scopes[0].removesuffix("/.default")
        return AccessToken(self._world.cloud.tokens.issue(self._principal, audience), 0)


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
    """All of them, read by the deployer."""
    with AzureClient(cloud, IssuedTokens(world, deployer), str(certificates.ca_file)) as opened:
        yield opened
