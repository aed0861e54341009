"""The servicer over a real gRPC connection, with a provider made for the purpose."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from plugin import Provider, Resource
from plugin.servicer import EngineLog, Servicer
from plugin.values import UNKNOWN, Secret, from_struct, to_struct

_ROOT = Path(__file__).parents[3]
_URN = "urn:pulumi:dev::project::idstack:azure:Vault$demo:index:Echo::name"

_PLUGIN = """
import threading
from pathlib import Path
from plugin import *

class Echo(Resource):
    def check(self, urn, old, new):
        failures = [CheckFailure("size", "must not be negative")] if unwrap(new.get("size", 0)) == -1 else []
        return Checked({**new, "fresh": old is None}, failures)
    def diff(self, urn, id, old_inputs, old_state, new_inputs):
        changes = diff_properties(old_inputs, new_inputs)
        return Diff({path: PropertyChange(each.kind, replace=path == "name") for path, each in changes.items()})
    def create(self, urn, inputs, *, preview):
        if "boom" in inputs: raise PluginError("the thing is taken; choose another name")
        if "forever" in inputs: Path(inputs["forever"]).touch(); threading.Event().wait()
        if "gate" in inputs: Path(inputs["gate"]).touch(); pause(3600)
        if "half" in inputs: raise InitializationError("it is not ready", "id-1", {**inputs, "key": Secret("s")})
        if "bug" in inputs: raise KeyError("bug")
        return Created("" if preview else "id-1", {**inputs, "computed": UNKNOWN if preview else Secret("s")})
    def read(self, urn, id, inputs, state):
        if id == "forever": Path(state["forever"]).touch(); threading.Event().wait()
        return None if id == "gone" else ReadResult(id, inputs, state)
    def update(self, urn, id, old_inputs, old_state, new_inputs, *, preview):
        return new_inputs
    def delete(self, urn, id, inputs, state):
        pass

class Demo(Provider):
    name, version = "demo", "1.2.3"
    def resource(self, type_token):
        if type_token != "demo:index:Echo": raise PluginError(f'no type "{type_token}"')
        return Echo()

serve(Demo())
"""


# Not by `preexec_fn`: gRPC's threads run in this process, and a lock that one of them holds stays held in a fork.
_BORN: Final = "import os, signal, sys; signal.signal(signal.SIGINT, {}); os.execv(sys.executable, sys.argv[1:])"


@contextmanager
def served(
    *, stderr: int | None = None, born_with: signal.Handlers = signal.SIG_DFL
) -> Iterator[tuple[subprocess.Popen[str], provider_pb2_grpc.ResourceProviderStub]]:
    """The plugin in a process that treats interrupts so as it begins, and a client of it."""
    plugin = [sys.executable, "-c", _PLUGIN]
    command = [sys.executable, "-c", _BORN.format(int(born_with)), *plugin]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=_ROOT) as process:
        assert process.stdout is not None
        try:
            with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
                yield process, provider_pb2_grpc.ResourceProviderStub(channel)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def stub() -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    with served() as (_, client):
        yield client


def test_the_type_is_taken_from_a_nested_urn(stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    created = stub.Create(provider_pb2.CreateRequest(urn=_URN, properties=to_struct({"a": 1})))

    assert created.id == "id-1"
    assert from_struct(created.properties) == {"a": 1, "computed": Secret("s")}
    planned = stub.Create(provider_pb2.CreateRequest(urn=_URN, properties=to_struct({}), preview=True))
    assert (planned.id, from_struct(planned.properties)) == ("", {"computed": UNKNOWN})
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(provider_pb2.CheckRequest(urn="urn:pulumi:dev::project::demo:index:Other::x", news=to_struct({})))
    assert caught.value.details() == 'no type "demo:index:Other"'


def test_check_tells_a_new_resource_from_an_old_one(stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    new = stub.Check(provider_pb2.CheckRequest(urn=_URN, news=to_struct({"size": -1})))
    old = stub.Check(provider_pb2.CheckRequest(urn=_URN, olds=to_struct({"size": 1}), news=to_struct({"size": 2})))

    assert from_struct(new.inputs)["fresh"] is True
    assert [(failure.property, failure.reason) for failure in new.failures] == [("size", "must not be negative")]
    assert from_struct(old.inputs)["fresh"] is False


def test_a_diff_names_paths_and_replacement(stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    diff = stub.Diff(
        provider_pb2.DiffRequest(
            urn=_URN,
            id="id-1",
            old_inputs=to_struct({"name": "x", "list": [1, 2], "same": Secret(1), "tags": {}}),
            news=to_struct({"name": "y", "list": [1, 3], "same": 1, "tags": {'the "cost.center"': {"a": 1}}}),
        )
    )

    assert diff.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert list(diff.replaces) == ["name"]
    assert {path: change.kind for path, change in diff.detailedDiff.items()} == {
        "list[1]": provider_pb2.PropertyDiff.UPDATE,
        "name": provider_pb2.PropertyDiff.UPDATE_REPLACE,
        'tags["the \\"cost.center\\""]': provider_pb2.PropertyDiff.ADD,
    }
    assert all(change.inputDiff for change in diff.detailedDiff.values()), "one of an output prints as a deletion"
    ignored = stub.Diff(
        provider_pb2.DiffRequest(
            urn=_URN, old_inputs=to_struct({"a": 1}), news=to_struct({"a": 2}), ignoreChanges=["a"]
        )
    )
    assert (ignored.changes, ignored.hasDetailedDiff) == (provider_pb2.DiffResponse.DIFF_NONE, False)


def test_a_resource_that_is_gone_has_no_id(stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    assert stub.Read(provider_pb2.ReadRequest(urn=_URN, id="gone")).id == ""
    assert stub.Read(provider_pb2.ReadRequest(urn=_URN, id="here")).id == "here"


@pytest.mark.parametrize(
    ("properties", "status", "details"),
    [
        ({"boom": 1}, grpc.StatusCode.UNKNOWN, "the thing is taken; choose another name"),
        (
            {"bug": 1},
            grpc.StatusCode.INTERNAL,
            "Create failed with KeyError, a defect of the plugin; its standard error has the place",
        ),
    ],
)
def test_an_error_is_its_message_without_a_trace(
    stub: provider_pb2_grpc.ResourceProviderStub, properties: dict[str, int], status: grpc.StatusCode, details: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.Create(provider_pb2.CreateRequest(urn=_URN, properties=to_struct(properties)))

    assert (caught.value.code(), caught.value.details()) == (status, details)


def test_the_log_has_the_place_of_a_defect_and_not_its_text(caplog: pytest.LogCaptureFixture) -> None:
    class Defective(Provider):
        name, version = "defective", "0.0.1"

        def resource(self, type_token: str) -> Resource:
            raise KeyError("MARK" + "ER")

    context = Mock(spec=grpc.ServicerContext)
    context.abort.side_effect = grpc.RpcError
    with pytest.raises(grpc.RpcError):
        Servicer(Defective(), EngineLog(None)).Create(provider_pb2.CreateRequest(urn=_URN), context)

    [record] = caplog.records
    assert record.getMessage().startswith("Create failed: KeyError\n")
    assert 'test_server.py", line' in record.getMessage()
    assert "MARKER" not in caplog.text
    assert "MARKER" not in str(context.abort.call_args)


def test_what_was_made_before_a_failure_reaches_the_state(stub: provider_pb2_grpc.ResourceProviderStub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.Create(provider_pb2.CreateRequest(urn=_URN, properties=to_struct({"half": 1})))

    call: Any = caught.value
    status = status_pb2.Status.FromString(dict(call.trailing_metadata())["grpc-status-details-bin"])
    made = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(made)
    assert (status.message, list(made.reasons)) == ("it is not ready", ["it is not ready"])
    assert (made.id, from_struct(made.properties)) == ("id-1", {"half": 1, "key": Secret("s")})


_CREATE = provider_pb2.CreateRequest
_READ = provider_pb2.ReadRequest


@pytest.mark.parametrize(
    ("begin", "message"),
    [
        (
            lambda stub, begun: stub.Create.future(_CREATE(urn=_URN, properties=to_struct({"gate": begun}))),
            "interrupted while it waited; run the command again",
        ),
        (
            lambda stub, begun: stub.Create.future(_CREATE(urn=_URN, properties=to_struct({"forever": begun}))),
            "interrupted during a request, which may have taken effect; run the command again",
        ),
        (
            lambda stub, begun: stub.Read.future(
                _READ(urn=_URN, id="forever", properties=to_struct({"forever": begun}))
            ),
            "interrupted; run the command again",
        ),
    ],
    ids=["a pause", "a write without an answer", "a read without an answer"],
)
def test_cancel_ends_what_is_under_way_in_words(
    tmp_path: Path, begin: Callable[[provider_pb2_grpc.ResourceProviderStub, str], Any], message: str
) -> None:
    begun = tmp_path / "begun"
    with served() as (_, client):
        call = begin(client, str(begun))
        _await(begun, call)

        client.Cancel(empty_pb2.Empty())

        assert call.exception(60).details() == message


def _await(begun: Path, call: Any) -> None:
    """Wait until the plugin has made the file, while the call goes on."""
    while not begun.exists():
        with pytest.raises(grpc.FutureTimeoutError):
            call.exception(0.05)


def test_nothing_begins_after_a_cancel() -> None:
    with served() as (_, client):
        client.Cancel(empty_pb2.Empty())
        client.Cancel(empty_pb2.Empty())

        with pytest.raises(grpc.RpcError) as caught:
            client.Create(provider_pb2.CreateRequest(urn=_URN, properties=to_struct({})))

    assert caught.value.details() == "interrupted before it began; run the command again"


@pytest.mark.parametrize("born_with", [signal.SIG_DFL, signal.SIG_IGN])
def test_an_interrupted_plugin_ends_at_once_whatever_is_under_way(tmp_path: Path, born_with: signal.Handlers) -> None:
    """The engine interrupts its plugins one after another, and takes one whose turn comes late for a crashed one.

    What a shell starts in the background is born ignoring interrupts.
    """
    begun = tmp_path / "begun"
    with served(stderr=subprocess.PIPE, born_with=born_with) as (process, client):
        call = client.Create.future(
            provider_pb2.CreateRequest(urn=_URN, properties=to_struct({"forever": str(begun)})), wait_for_ready=True
        )
        _await(begun, call)

        process.send_signal(signal.SIGINT)

        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == "", "no stack trace for the engine's log"
