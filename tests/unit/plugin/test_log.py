"""What a resource logs reaches the engine or is dropped, and waiting ends with the engine's Cancel."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent import futures
from contextvars import ContextVar
from pathlib import Path
from threading import Event, Thread
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc

from plugin import PluginError, PluginInterruptedError, log_info
from plugin.servicer import Cancellation, EngineLog, logging_to
from plugin.values import to_struct

URN = "urn:pulumi:dev::project::demo:index:Slow::name"
PLUGIN = """
from plugin import *

class Slow(Resource):
    def diff(self, urn, id, old_inputs, old_state, new_inputs): return Diff()
    def read(self, urn, id, inputs, state): return None
    def delete(self, urn, id, inputs, state): pass
    def create(self, urn, inputs, *, preview):
        log_info("waiting for the cluster")
        return Created("id-1", inputs)
    def update(self, urn, id, old_inputs, old_state, new_inputs, *, preview):
        log_info("waiting again")
        return new_inputs

class Demo(Provider):
    name, version = "demo", "1.2.3"
    def resource(self, type_token): return Slow()

serve(Demo())
"""


class EngineDouble(engine_pb2_grpc.EngineServicer):
    """Collects what is logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str, str]] = []

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.lines.append((request.severity, request.urn, request.message))
        return empty_pb2.Empty()


@pytest.fixture
def engine() -> Iterator[tuple[EngineDouble, str]]:
    engine, server = EngineDouble(), grpc.server(futures.ThreadPoolExecutor())
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield engine, f"127.0.0.1:{port}"
    server.stop(None)


def test_the_engine_gets_what_create_and_update_log(engine: tuple[EngineDouble, str]) -> None:
    listening, address = engine
    # With --logflow and --tracing the engine's address is the last of several arguments.
    command = [sys.executable, "-c", PLUGIN, "-v=9", "--tracing", "http://127.0.0.1:1", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            stub.Create(provider_pb2.CreateRequest(urn=URN, properties=to_struct({})))
            stub.Update(provider_pb2.UpdateRequest(urn=URN, news=to_struct({})))
        process.kill()

    assert listening.lines == [
        (engine_pb2.INFO, URN, "waiting for the cluster"),
        (engine_pb2.INFO, URN, "waiting again"),
    ]


def test_without_an_engine_a_line_is_dropped() -> None:
    log_info("dropped")
    EngineLog(None).info(URN, "dropped")
    EngineLog("127.0.0.1:1").info(URN, "dropped")


def test_only_what_is_logged_in_the_block_is_passed_on() -> None:
    lines: list[str] = []
    with logging_to(lines.append):
        log_info("inside")
    log_info("outside")
    assert lines == ["inside"]


_NAME: ContextVar[str] = ContextVar("name", default="nobody")


def _when(event: Event, action: Callable[[], object]) -> None:
    """Do something, in another thread, once the event has come."""
    Thread(target=lambda: event.wait() and action(), daemon=True).start()


def test_work_that_ends_is_its_result_or_its_error() -> None:
    cancellation = Cancellation()

    def bug() -> None:
        raise KeyError("bug")

    assert cancellation.run(lambda: 4) == 4
    _NAME.set("somebody")
    assert cancellation.run(_NAME.get) == "somebody", "it runs in the caller's context"
    with pytest.raises(KeyError, match="bug"):
        cancellation.run(bug)


def test_work_that_hangs_is_left_behind() -> None:
    cancellation, begun, never = Cancellation(), Event(), Event()

    def hang() -> None:
        begun.set()
        never.wait()

    _when(begun, cancellation.cancel)
    with pytest.raises(PluginInterruptedError, match=r"^interrupted; run the command again$"):
        cancellation.run(hang)
    never.set()


def test_a_write_that_answers_within_its_grace_counts() -> None:
    cancellation, begun, cancelled = Cancellation(), Event(), Event()

    def write() -> str:
        begun.set()
        cancelled.wait()
        return "written"

    def cancel() -> None:
        cancellation.cancel()
        cancelled.set()

    _when(begun, cancel)
    assert cancellation.run(write, grace=60) == "written"


def test_a_pause_ends_at_once_when_it_is_over_or_cancelled() -> None:
    cancellation = Cancellation()
    cancellation.pause(0)

    cancellation.cancel()

    with pytest.raises(PluginError, match="interrupted while it waited"):
        cancellation.pause(3600)
    with pytest.raises(PluginError, match="interrupted before it began"):
        cancellation.run(lambda: 4)
