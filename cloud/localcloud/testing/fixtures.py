"""Fixtures for `pytest_plugins`: a local Azure in this process, and servers that real clients reach over sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from localcloud.core.store import SEAL_KEY_BYTES, Store
from localcloud.kubernetes.api import app as kubernetes_app
from localcloud.testing.azure import LocalAzure, assemble, open_store
from localcloud.testing.faults import NO_DELAYS
from localcloud.testing.hosts import Certificates, Host, Serve, running
from localcloud.testing.kubernetes import TOKEN, RunningApi, write_kubeconfig

_Pool = Callable[[Path | None], Host]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """One CA and server certificate for all tests."""
    directory = tmp_path_factory.mktemp("tls")
    made = Certificates(directory / "ca.pem", directory / "server.pem")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(made.ca_file)
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(made.server_file)
    return made


@pytest.fixture
def serve(_hosts: _Pool, certificates: Certificates) -> Iterator[Serve]:
    """Serves an application over TLS until the test's end; returns `https://127.0.0.1:<port>`."""
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(_hosts(certificates.server_file).serving(app))


@pytest.fixture
def serve_plain(_hosts: _Pool) -> Iterator[Serve]:
    """As `serve`, over plain HTTP."""
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(_hosts(None).serving(app))


@pytest.fixture(scope="session")
def _hosts() -> Iterator[_Pool]:
    """A host that serves nothing at the moment; all of them end with the session."""
    hosts: dict[Path | None, list[Host]] = {}
    with ExitStack() as stack:

        def idle_host(server_file: Path | None) -> Host:
            known = hosts.setdefault(server_file, [])
            found = next((host for host in known if host.is_idle), None)
            if found is None:
                found = stack.enter_context(running(server_file))
                known.append(found)
            return found

        yield idle_host


@pytest.fixture
def azure(tmp_path: Path) -> Iterator[LocalAzure]:
    """An empty local Azure over a store of the test's own, without any delay; serve one of its applications."""
    store = open_store(tmp_path / "state.sqlite")
    yield assemble(store, NO_DELAYS, authority_host="https://127.0.0.1/")
    store.close()


@pytest.fixture
def kubernetes_store(tmp_path: Path) -> Iterator[Store]:
    """What the Kubernetes API of the test remembers."""
    store = Store(tmp_path / "kubernetes.sqlite", bytes(SEAL_KEY_BYTES))
    yield store
    store.close()


@pytest.fixture
def api(kubernetes_store: Store, serve: Serve, certificates: Certificates, tmp_path: Path) -> RunningApi:
    """The Kubernetes API over TLS."""
    server = serve(kubernetes_app(kubernetes_store, TOKEN, tmp_path))
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server, certificates.ca_file)
    return RunningApi(server, certificates.ca_file, kubeconfig)
