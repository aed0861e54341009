"""The official client, pointed at the API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client, config, dynamic

from localcloud.testing.kubernetes import RunningApi


@pytest.fixture
def official(api: RunningApi) -> Iterator[client.ApiClient]:
    """The official Python client."""
    with config.new_client_from_config(str(api.kubeconfig)) as made:
        yield made


@pytest.fixture
def untyped(official: client.ApiClient, tmp_path: Path) -> dynamic.DynamicClient:
    """The official client without its models: it sends every document as it is."""
    return dynamic.DynamicClient(official, cache_file=str(tmp_path / "discovery.json"))
