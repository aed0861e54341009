"""The daemon: every service of the local cloud in one process and one event loop.

Handlers are coroutines that do their short work on the store without awaiting in between, so each request is atomic.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable

from starlette.applications import Starlette

from localcloud.azure.aks_webhooks.api import app as aks_webhooks
from localcloud.azure.arm.api import app as arm
from localcloud.azure.blob.api import app as blob
from localcloud.azure.entra.api import app as entra
from localcloud.azure.entra.federation import Issuers
from localcloud.azure.graph.api import app as graph
from localcloud.azure.imds.api import app as imds
from localcloud.azure.keyvault.api import app as keyvault
from localcloud.core import processes
from localcloud.core.serving import ServiceServer
from localcloud.core.state_directory import StateDirectory
from localcloud.kubernetes.api import app as kubernetes
from localcloud.runtime.environment import Prepared, is_plain_text, listen, prepare
from localcloud.runtime.lifecycle import DAEMON

_APPS: dict[str, Callable[[Prepared], Starlette]] = {
    "entra": lambda prepared: entra(
        prepared.cloud, Issuers(prepared.state.ca_file, prepared.environment.blob_endpoint)
    ),
    "arm": lambda prepared: arm(prepared.cloud),
    "graph": lambda prepared: graph(prepared.cloud),
    "keyvault": lambda prepared: keyvault(prepared.cloud),
    "blob": lambda prepared: blob(prepared.cloud),
    "imds": lambda prepared: imds(prepared.cloud),
    "aks-webhooks": lambda prepared: aks_webhooks(prepared.cloud),
    "kubernetes": lambda prepared: kubernetes(prepared.store, prepared.kubernetes_token, prepared.cloud.tokens),
}


class AlreadyRunning(RuntimeError):
    """Another daemon serves this state directory."""


def run(state: StateDirectory) -> None:
    """Serve until SIGTERM or SIGINT; raises `AlreadyRunning`, or `environment.PortTaken`."""
    prepared = prepare(state)
    try:
        if other := processes.alive(state.pids, DAEMON):
            raise AlreadyRunning(f"the local cloud of {state.root} is running already, as process {other.pid}")
        servers = [
            (_server(prepared, service), listen(service, prepared.ports[service])) for service in prepared.services
        ]
        record = processes.record(state.pids, DAEMON, os.getpid())
        try:
            asyncio.run(_serve(servers))
        finally:
            record.file.unlink(missing_ok=True)
    finally:
        prepared.close()


def _server(prepared: Prepared, service: str) -> ServiceServer:
    return ServiceServer(_APPS[service](prepared), None if is_plain_text(service) else prepared.state.server_file)


async def _serve(servers: list[tuple[ServiceServer, socket.socket]]) -> None:
    def end() -> None:
        for server, _ in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    await asyncio.gather(*(server.serve(sockets=[listener]) for server, listener in servers))
