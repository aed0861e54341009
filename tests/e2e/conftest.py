"""What the end-to-end tests share: Microsoft Graph as the deployer, and trust in the local cloud's certificates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import Graph, LocalStack


@pytest.fixture
def graph(stack: LocalStack) -> Iterator[Graph]:
    graph = Graph(stack.environment)
    yield graph
    graph.close()


@pytest.fixture(autouse=True)
def trusted(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients trust the local cloud's certificate authority."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
    monkeypatch.setenv("SSL_CERT_FILE", stack.environment.ca_file)
