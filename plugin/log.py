"""Progress of a resource that takes time: lines in the engine's output, under the resource's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Final

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

_SINK: Final[ContextVar[Callable[[str], object]]] = ContextVar("sink")


def log_info(text: str) -> None:
    """Write a line to the engine's output; it is dropped outside of the engine's calls to create and update."""
    sink = _SINK.get(None)
    if sink is not None:
        sink(text)


@contextmanager
def logging_to(sink: Callable[[str], object]) -> Iterator[None]:
    """Pass what is logged in the block, on this thread, to `sink`."""
    token = _SINK.set(sink)
    try:
        yield
    finally:
        _SINK.reset(token)


class EngineLog:
    """The log of the engine at an address, `host:port`; without an address every line is dropped."""

    def __init__(self, address: str | None) -> None:
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address)) if address else None

    def info(self, urn: str, text: str) -> None:
        """Write a line about the resource `urn`. A line that does not arrive does not fail the resource."""
        if self._engine is not None:
            with suppress(grpc.RpcError):
                self._engine.Log(engine_pb2.LogRequest(severity=engine_pb2.INFO, message=text, urn=urn))
