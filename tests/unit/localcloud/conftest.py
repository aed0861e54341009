"""A Kubernetes API over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.core.store import SEAL_KEY_BYTES, Store
from localcloud.kubernetes.api import app as kubernetes_app
from tests.unit.hosts import Certificates, Serve
from tests.unit.localcloud.kubernetes_world import TOKEN, RunningApi, write_kubeconfig


@pytest.fixture
def kubernetes_store(tmp_path: Path) -> Iterator[Store]:
    """What the Kubernetes API of the test remembers."""
    store = Store(tmp_path / "kubernetes.sqlite", bytes(SEAL_KEY_BYTES))
    yield store
    store.close()


@pytest.fixture
def api(kubernetes_store: Store, serve: Serve, certificates: Certificates, tmp_path: Path) -> RunningApi:
    """The Kubernetes API over TLS."""
    server = serve(kubernetes_app(kubernetes_store, TOKEN))
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server, certificates.ca_file)
    return RunningApi(server, certificates.ca_file, kubeconfig)
