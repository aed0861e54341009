"""Serve a `Provider` to the engine, as a process that the engine started or within one that runs already."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Final

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from plugin.attachments import Attachments
from plugin.provider import Provider
from plugin.servicer import Servicer

# Cloud calls wait, they do not compute; more threads than the engine's parallelism cost nothing.
_THREADS: Final = 128
# Pulumi's own limit for a message (sdk/go/common/util/rpcutil/serve.go): 400 MB.
_MESSAGE_LIMIT: Final = 1024 * 1024 * 400
# How often an orphan looks for its engine, in seconds.
_PARENT_POLL: Final = 0.5


class PluginServer:
    """Answers engines on `port` (TCP, loopback) until `stop`, in threads of this process.

    With `PULUMI_DEBUG_PROVIDERS=<plugin name>:<port>,...` in its environment an engine attaches itself here instead of
    starting a plugin process. Engines may come one after another and side by side, each with several provider
    resources: every one of these gets a provider of its own from `make`. An engine that ends leaves the server as it
    was.

    Providers read the environment of this process, not the engine's.
    """

    def __init__(self, make: Callable[[], Provider], *, engine_address: str | None = None) -> None:
        """`engine_address` (`host:port`) is the engine that started this process; an attached one names its own."""
        self._attachments = Attachments(make, engine_address)
        self._server = grpc.server(
            futures.ThreadPoolExecutor(max_workers=_THREADS),
            options=[
                ("grpc.max_receive_message_length", _MESSAGE_LIMIT),
                ("grpc.max_send_message_length", _MESSAGE_LIMIT),
            ],
        )
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(self._attachments), self._server)
        self.port: Final[int] = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def wait(self) -> None:
        """Return once the server was stopped."""
        self._server.wait_for_termination()

    def stop(self, *, grace: float = 0) -> None:
        """Take no further calls, and abort those still under way after `grace` seconds."""
        self._server.stop(grace).wait()
        self._attachments.close()


def serve(make: Callable[[], Provider]) -> None:
    """Serve until the engine cancels or dies. Prints the port, as the engine expects, and nothing else, on stdout."""
    # The engine starts a plugin with its own address as the only argument.
    server = PluginServer(make, engine_address=next(iter(sys.argv[1:]), None))
    _end_when_interrupted()
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    server.wait()


def _end_when_interrupted() -> None:
    """End at once, whatever is under way."""
    # The engine interrupts its plugins at the end of a command, one after another, and gives all of them five seconds
    # (pkg/host/host.go, ReleaseContext): whose turn comes too late "exited prematurely", and the command fails. So do
    # not wait for calls, threads and the interpreter's own end, seconds on a busy machine. Nor leave it to
    # Python, which ignores interrupts if its parent did, as below a background job of a shell.
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))


def _end_with_parent(parent: int) -> None:
    """A killed engine cannot cancel its plugins: end once the process that started this one is gone."""
    ended = threading.Event()
    while os.getppid() == parent:
        ended.wait(_PARENT_POLL)
    os._exit(1)
