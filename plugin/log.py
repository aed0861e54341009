"""What a resource says while it works: a line in the engine's output, under the resource's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Final

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

_LISTENER: Final[ContextVar[Callable[[str], object]]] = ContextVar("listener")


def say(text: str) -> None:
    """Tell whoever runs the engine; outside of a call of the engine's nobody listens."""
    listener = _LISTENER.get(None)
    if listener is not None:
        listener(text)


@contextmanager
def heard(listener: Callable[[str], object]) -> Iterator[None]:
    """What is said in the block, on this thread, goes to `listener`."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class EngineLog:
    """The log of the engine at an address, `host:port`; without one every line is lost."""

    def __init__(self, address: str | None) -> None:
        self._channel = grpc.insecure_channel(address) if address else None
        self._engine = engine_pb2_grpc.EngineStub(self._channel) if self._channel else None

    def info(self, urn: str, text: str) -> None:
        """A line about a resource. A line that does not arrive is no reason to stop."""
        if self._engine is not None:
            with suppress(grpc.RpcError, ValueError):  # ValueError: closed meanwhile
                self._engine.Log(engine_pb2.LogRequest(severity=engine_pb2.INFO, message=text, urn=urn))

    def close(self) -> None:
        """Close the connection; every later line is lost."""
        if self._channel is not None:
            self._channel.close()
        self._engine = None
