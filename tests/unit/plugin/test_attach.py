"""Engines that attach themselves to a server within this process, as `PULUMI_DEBUG_PROVIDERS` makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from plugin import (
    Created,
    Diff,
    PluginError,
    PluginServer,
    Props,
    Provider,
    ReadResult,
    Resource,
)
from plugin.attachments import Attachments
from plugin.values import from_struct, to_struct

_URN = "urn:pulumi:dev::project::demo:index:Owned::name"


class Owned(Resource):
    """Belongs to whom its provider was configured for."""

    def __init__(self, owner: str | None) -> None:
        self._owner = owner

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        return Diff()

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        if self._owner is None:
            raise PluginError("not configured")
        return Created("id-1", {"owner": self._owner})

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        return None

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        return new_inputs

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        return


class Owning(Provider):
    name, version = "demo", "1.2.3"

    def __init__(self) -> None:
        self.owner: str | None = None

    def configure(self, inputs: Props) -> None:
        self.owner = str(inputs["owner"])

    def resource(self, type_token: str) -> Resource:
        return Owned(self.owner)


@pytest.fixture
def server() -> Iterator[PluginServer]:
    server = PluginServer(Owning)
    yield server
    server.stop()


@contextmanager
def connected(server: PluginServer) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    """A connection of its own, as the engine opens one for each provider resource."""
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)


@contextmanager
def attached(server: PluginServer, owner: str) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    """An attached engine that configured its provider for `owner`."""
    with connected(server) as stub:
        stub.Attach(plugin_pb2.PluginAttach(address="127.0.0.1:1"))
        stub.Configure(provider_pb2.ConfigureRequest(args=to_struct({"owner": owner})))
        yield stub


def owner_by(stub: provider_pb2_grpc.ResourceProviderStub) -> object:
    return from_struct(stub.Create(provider_pb2.CreateRequest(urn=_URN)).properties)["owner"]


def test_engines_side_by_side_have_a_provider_each(server: PluginServer) -> None:
    with attached(server, "first") as first, attached(server, "second") as second:
        assert [owner_by(each) for each in (first, second, first)] == ["first", "second", "first"]


def test_an_attached_engine_inherits_no_configuration(server: PluginServer) -> None:
    with attached(server, "first") as first:
        first.Cancel(empty_pb2.Empty())
    with connected(server) as second:
        second.Attach(plugin_pb2.PluginAttach(address="127.0.0.1:1"))

        with pytest.raises(grpc.RpcError) as caught:
            owner_by(second)

    assert caught.value.details() == "not configured"


def test_cancel_ends_neither_the_process_nor_the_other_engines(server: PluginServer) -> None:
    with attached(server, "first") as first, attached(server, "second") as second:
        first.Cancel(empty_pb2.Empty())

        assert owner_by(second) == "second"
        assert owner_by(first) == "first", "an interrupted engine may still send the rest of a step"


def test_a_stopped_server_takes_no_calls_and_another_one_does() -> None:
    first, second = PluginServer(Owning), PluginServer(Owning)
    with attached(first, "first") as ended, attached(second, "second") as living:
        first.stop()

        with pytest.raises(grpc.RpcError) as caught:
            owner_by(ended)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        assert owner_by(living) == "second"
    second.stop()


def test_attachments_of_cancelled_engines_are_dropped_in_the_end() -> None:
    attachments = Attachments(Owning, None)
    peers = [f"ipv4:127.0.0.1:{port}" for port in range(40)]
    for peer in peers:
        attachments.attach(peer, "127.0.0.1:1")
        attachments.cancel(peer)

    apart = [peer for peer in peers if attachments.of(peer) is not attachments.of("ipv4:127.0.0.1:99")]

    assert apart == peers[-32:]
    attachments.close()


def test_a_port_that_is_used_again_gets_a_new_provider() -> None:
    attachments = Attachments(Owning, None)
    peer = "ipv4:127.0.0.1:1234"
    attachments.attach(peer, "127.0.0.1:1")
    before = attachments.of(peer)
    attachments.cancel(peer)

    attachments.attach(peer, "127.0.0.1:1")

    assert attachments.of(peer).provider is not before.provider
    attachments.close()
