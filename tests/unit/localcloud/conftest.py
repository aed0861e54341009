"""Serves applications of the local cloud over sockets, so that real clients can be pointed at them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from localcloud.kubernetes.api import app as kubernetes_app
from localcloud.serving import Server
from localcloud.state import SEAL_KEY_BYTES, Store
from localcloud.tls import ensure_certificate
from tests.unit.localcloud.kubernetes_world import TOKEN, RunningApi, write_kubeconfig


@dataclass(frozen=True)
class Certificates:
    """Files of the servers' TLS: the CA that clients trust, and the server's key and certificate."""

    ca_file: Path
    server_file: Path


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """One CA and server certificate for all tests."""
    directory = tmp_path_factory.mktemp("tls")
    made = Certificates(directory / "ca.pem", directory / "server.pem")
    ensure_certificate(made.ca_file, made.server_file)
    return made


Serve = Callable[[Starlette], str]
_Pool = Callable[[Path | None], "_Host"]


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


@pytest.fixture(scope="session")
def _hosts() -> Iterator[_Pool]:
    """A host that serves nothing at the moment; all of them end with the session."""
    hosts: dict[Path | None, list[_Host]] = {}
    with ExitStack() as stack:

        def idle_host(server_file: Path | None) -> _Host:
            known = hosts.setdefault(server_file, [])
            found = next((host for host in known if host.is_idle), None)
            if found is None:
                found = stack.enter_context(_running(server_file))
                known.append(found)
            return found

        yield idle_host


class _Host(Server):
    """One port for one application after another: to start and end a server takes longer than most tests."""

    def __init__(self, server_file: Path | None, listener: socket.socket) -> None:
        super().__init__(self, server_file)
        self._url = f"{'https' if server_file else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        self._app: Starlette | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.answers = threading.Event()

    @property
    def is_idle(self) -> bool:
        return self._app is None

    @contextmanager
    def serving(self, app: Starlette) -> Iterator[str]:
        """Serve `app` and end whatever it still answers."""
        self._app = app
        yield self._url
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._end_requests(), self._loop).result(10)
        self._app = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.answers.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._app is not None, "a request after its test"
        await self._app(scope, receive, send)

    async def _end_requests(self) -> None:
        self.drop_connections()
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)


@contextmanager
def _running(server_file: Path | None) -> Iterator[_Host]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = _Host(server_file, listener)
        thread = threading.Thread(target=host.run, args=([listener],), daemon=True)
        thread.start()
        assert host.answers.wait(10), "the server did not start"
        yield host
        host.should_exit = True
        thread.join(10)
        assert not thread.is_alive(), "the server did not end"
