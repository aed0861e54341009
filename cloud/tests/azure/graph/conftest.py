from __future__ import annotations

import ssl
from collections.abc import Iterator

import httpx
import pytest

from localcloud.azure.graph.api import app
from localcloud.azure.graph.permissions import WRITE_OWNED
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.hosts import Certificates, Serve
from tests.azure.graph.world import GRAPH, As, signed_in


@pytest.fixture
def caller_as(azure: LocalAzure, serve: Serve, certificates: Certificates) -> Iterator[As]:
    """Clients of Graph that carry a service principal's token."""
    base = serve(app(azure))
    opened: list[httpx.Client] = []

    def connect(principal: ServicePrincipal) -> httpx.Client:
        bearer = {"Authorization": f"Bearer {azure.tokens.issue(principal, GRAPH)}"}
        trusting = ssl.create_default_context(cafile=certificates.ca_file)
        opened.append(httpx.Client(base_url=f"{base}/v1.0", headers=bearer, verify=trusting))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


@pytest.fixture
def deployer(azure: LocalAzure) -> ServicePrincipal:
    return signed_in(azure, WRITE_OWNED)


@pytest.fixture
def graph(caller_as: As, deployer: ServicePrincipal) -> httpx.Client:
    return caller_as(deployer)
