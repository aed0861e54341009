"""Serve a `Provider` to the engine that started this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent import futures
from typing import Final

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from plugin.provider import Provider
from plugin.servicer import EngineLog, Servicer

# Cloud calls wait, they do not compute; more threads than the engine's parallelism cost nothing.
_THREADS: Final = 128
# Pulumi's own limit for a message (sdk/go/common/util/rpcutil/serve.go): 400 MB.
_MESSAGE_LIMIT: Final = 1024 * 1024 * 400
# How often an orphan looks for its engine, in seconds.
_PARENT_POLL: Final = 0.5


def serve(provider: Provider) -> None:
    """Serve until the engine cancels or dies. Prints the port, as the engine expects, and nothing else, on stdout."""
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=_THREADS),
        options=[("grpc.max_receive_message_length", _MESSAGE_LIMIT), ("grpc.max_send_message_length", _MESSAGE_LIMIT)],
    )
    # The engine's own address is the last argument; with --logflow or --tracing others come before it.
    log = EngineLog(sys.argv[-1] if sys.argv[1:] else None)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(provider, log), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    _end_when_interrupted()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    server.wait_for_termination()


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
