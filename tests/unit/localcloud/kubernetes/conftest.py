"""The API over TLS, and the official client pointed at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client, config

from localcloud.kubernetes.api import app
from localcloud.state import SEAL_KEY_BYTES, Store
from tests.unit.localcloud.conftest import Certificates, Serve
from tests.unit.localcloud.kubernetes_world import TOKEN, RunningApi, write_kubeconfig


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "state.sqlite", bytes(SEAL_KEY_BYTES))
    yield opened
    opened.close()


@pytest.fixture
def api(store: Store, serve: Serve, certificates: Certificates, tmp_path: Path) -> RunningApi:
    server = serve(app(store, TOKEN))
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server, certificates.ca_file)
    return RunningApi(server, certificates.ca_file, kubeconfig)


@pytest.fixture
def official(api: RunningApi) -> Iterator[client.ApiClient]:
    """The official Python client."""
    with config.new_client_from_config(str(api.kubeconfig)) as made:
        yield made
