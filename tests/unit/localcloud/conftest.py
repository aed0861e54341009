"""Serves one application of the local cloud over a socket, so that real clients can be pointed at it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette

from localcloud.tls import ensure_certificate


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


@pytest.fixture
def serve(certificates: Certificates) -> Iterator[Serve]:
    """Serves an application over TLS until the test's end; returns `https://127.0.0.1:<port>`."""
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(_served(app, certificates))


@pytest.fixture
def serve_plain() -> Iterator[Serve]:
    """As `serve`, over plain HTTP."""
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(_served(app, None))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()


@contextmanager
def _served(app: Starlette, certificates: Certificates | None) -> Iterator[str]:
    tls = certificates.server_file if certificates else None
    config = uvicorn.Config(
        app,
        ssl_certfile=tls,
        ssl_keyfile=tls,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=0,  # clients keep their connections
    )
    server = _Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        assert server.answers.wait(10), "the server did not start"
        yield f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)
