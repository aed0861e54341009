"""A resource monitor that records every registration with its options, every look-up, and which inputs were secret.

Assertions on absence mean something only after `run` returned, when all registrations have drained.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
import pulumi
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2, source_pb2
from pulumi.runtime.settings import SETTINGS, set_root_resource
from pulumi.runtime.stack import run_in_stack

from identity.settings import ConfigurationError
from tests.unit.components.simulation import UNKNOWN, planned_outputs, simulated
from tests.unit.golden_report import reviewed

Outputs = Mapping[str, Mapping[str, Any]]

_STACK = "pulumi:pulumi:Stack"


@dataclass(frozen=True)
class Properties:
    """Properties of one resource: `values` without secret marks (unknown ones are `UNKNOWN`), paths of the marked."""

    values: Mapping[str, Any]
    secrets: frozenset[str]

    @classmethod
    def read(cls, wire: struct_pb2.Struct) -> Properties:
        """Take off the marks."""
        secrets: set[str] = set()
        return cls(_without_marks(json_format.MessageToDict(wire), "", secrets), frozenset(secrets))

    def strings(self) -> Iterator[str]:
        """Every string, inside of secrets as well."""
        return _strings(self.values)


@dataclass(frozen=True)
class Registered:
    """One registration. `request` is the engine's own, with the options."""

    urn: str
    type: str
    name: str
    properties: Properties
    request: Any

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The inputs, without secret marks."""
        return self.properties.values

    @property
    def secrets(self) -> frozenset[str]:
        """Paths of the inputs that are marked as secret."""
        return self.properties.secrets

    @property
    def parent(self) -> str:
        """Name of the component it belongs to, or of the stack."""
        return _name(self.request.parent)

    @property
    def provider(self) -> str:
        """Name of the explicit provider, empty if there is none."""
        return _name(self.request.provider.rpartition("::")[0])

    @property
    def is_component(self) -> bool:
        """Whether it groups other resources and is nothing in itself."""
        return not self.request.custom


@dataclass(frozen=True)
class Invoked:
    """One lookup, with the name of the explicit provider that made it."""

    function: str
    arguments: Mapping[str, Any]
    provider: str


class RecordingMonitor(mocks.MockMonitor):
    """Answers registrations by the simulation and lookups from `invokes`.

    A lookup's answer is a mapping, an exception (the function fails with its message), or a function of the arguments.
    `replaced` are outputs, by type, that every resource of the type has instead of the simulated ones.
    """

    def __init__(self, invokes: Mapping[str, Any], replaced: Outputs, *, preview: bool) -> None:
        super().__init__(_NoMocks())
        self._invokes = invokes
        self._replaced = replaced
        self._preview = preview
        self.registered: list[Registered] = []
        self.invoked: list[Invoked] = []
        self.outputs: dict[str, Properties] = {}
        self.failure: Exception | None = None
        # Key path and rule of each problem of the configuration; the golden report has their messages.
        self.problems: list[tuple[str, str]] = []

    @property
    def stack_outputs(self) -> Properties:
        """What the stack exports."""
        return next(outputs for urn, outputs in self.outputs.items() if f"::{_STACK}::" in urn)

    def outputs_of(self, name: str) -> Mapping[str, Any]:
        """What the component of that name registered as its outputs."""
        return next(outputs.values for urn, outputs in self.outputs.items() if _name(urn) == name)

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        """Record, simulate, answer."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == _STACK:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        properties = Properties.read(request.object)
        self.registered.append(Registered(urn, request.type, request.name, properties, request))
        resource_id, outputs = simulated(request.type, request.name, properties.values)
        outputs.update(self._replaced.get(request.type, {}))
        if self._preview:
            resource_id, outputs = "", planned_outputs(request.type, properties.values, outputs)
        state = struct_pb2.Struct()
        state.CopyFrom(request.object)
        state.update(outputs)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=resource_id, object=state)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802
        """Record a StackReference and answer it as the lookup of the stack's outputs."""
        urn = self.make_urn(request.parent, request.type, request.name)
        self.registered.append(
            Registered(urn, request.type, request.name, Properties.read(request.properties), request)
        )
        state = struct_pb2.Struct()
        state.update(self._answer("pulumi:pulumi:readStackOutputs", {"name": request.id}))
        return resource_pb2.ReadResourceResponse(urn=urn, properties=state)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        """Keep them by the resource's URN."""
        self.outputs[request.urn] = Properties.read(request.outputs)
        return empty_pb2.Empty()

    def Invoke(self, request: Any) -> Any:  # noqa: N802
        """Record and answer a lookup."""
        arguments = Properties.read(request.args).values
        self.invoked.append(Invoked(request.tok, arguments, _name(request.provider.rpartition("::")[0])))
        response = resource_pb2.ResourceInvokeResponse()
        getattr(response, "return").update(self._answer(request.tok, arguments))
        return response

    def _answer(self, function: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._invokes[function]
        if callable(answer):
            answer = answer(arguments)
        if isinstance(answer, Exception):
            raise _InvocationError(f"invocation of {function} returned an error: {answer}")
        found: Mapping[str, Any] = answer
        return found

    def one(self, resource_type: str, name: str | None = None) -> Registered:
        """The only resource of that type (and name)."""
        found = [resource for resource in self.all(resource_type) if name in (None, resource.name)]
        assert len(found) == 1, (
            f"{resource_type} {name}: found {[resource.name for resource in found]} among {self.names()}"
        )
        return found[0]

    def all(self, resource_type: str) -> list[Registered]:
        """Every resource of that type, in order of registration."""
        return [resource for resource in self.registered if resource.type == resource_type]

    def names(self) -> list[str]:
        """Type and name of everything registered."""
        return sorted(f"{resource.type} {resource.name}" for resource in self.registered)

    def strings(self) -> Iterator[str]:
        """Every string that the engine got: inputs, and outputs of components and of the stack; of secrets as well."""
        for properties in (*(resource.properties for resource in self.registered), *self.outputs.values()):
            yield from properties.strings()

    def waits_for(self, waiting: Registered, other: Registered) -> bool:
        """Whether `waiting` comes after `other` by a chain of dependencies and parents."""
        by_urn = {resource.urn: resource for resource in self.registered}
        todo, seen = [waiting.urn], {""}
        while todo:
            urn = todo.pop()
            if urn not in seen and urn in by_urn:
                request = by_urn[urn].request
                todo += [*request.dependencies, request.parent]
            seen.add(urn)
        return waiting.urn != other.urn and other.urn in seen


def run(
    build: Callable[[], Awaitable[Any] | Any],
    *,
    invokes: Mapping[str, Any] | None = None,
    outputs: Outputs | None = None,
    preview: bool = False,
    refused: bool = False,
    project: str = "idstack",
) -> RecordingMonitor:
    """Run `build` as a Pulumi program of a project until every registration has drained.

    Raises what the program raised, but keeps a RunError as the recorder's `failure` if one is expected (`refused`).
    """
    recorder = RecordingMonitor(invokes or {}, outputs or {}, preview=preview)
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Nobody looks at them, and they are half of the time: the place in the program at which a resource is
            # registered, aliases as engines of old want them, and what the SDK logs for whoever debugs it.
            patch.setattr("pulumi.runtime.resource._get_stack_trace", source_pb2.StackTrace)
            patch.setattr("pulumi.resource.collapse_alias_to_urn", lambda *_: "")
            patch.setattr("pulumi.log.debug", lambda *_: None)
            asyncio.run(_program(build, recorder, project, preview=preview))
    except (pulumi.RunError, SystemExit) as ended:
        error = ended.__cause__ if isinstance(ended, SystemExit) else ended
        if not refused or not isinstance(error, pulumi.RunError):
            raise error or ended from None
        recorder.failure = error
        if isinstance(error.__context__, ConfigurationError):
            recorder.problems = reviewed(error.__context__.problems)
    return recorder


async def _program(
    build: Callable[[], Awaitable[Any] | Any], recorder: RecordingMonitor, project: str, *, preview: bool
) -> None:
    # `run_in_stack` raises the error that ends a program. Outputs that failed by it are never awaited. asyncio would
    # print each of them when it is collected, in the middle of another test.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    # `run_in_stack` makes the stack, as under the engine. The mocks bring one of their own unless there is a root.
    set_root_resource(object())  # type: ignore[arg-type]
    mocks.set_mocks(
        _NoMocks(), project=project, stack="test", organization="organization", preview=preview, monitor=recorder
    )
    set_root_resource(None)  # type: ignore[arg-type]
    # Outputs that failed in a program before this one are kept for its end, which an error has cut short.
    SETTINGS.rpc_manager.clear()
    SETTINGS.outputs.clear()
    await run_in_stack(build)


class _InvocationError(grpc.RpcError):
    """What the engine answers when a provider's function failed."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return str(self)


class _NoMocks(mocks.Mocks):
    """The recorder answers by itself."""

    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError("the recorder answers")

    def new_resource(self, args: mocks.MockResourceArgs) -> Any:
        raise AssertionError("the recorder answers")


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _without_marks(value: Any, path: str, secrets: set[str]) -> Any:
    match value:
        case {rpc._special_sig_key: rpc._special_secret_sig, "value": marked}:
            secrets.add(path)
            return _without_marks(marked, path, secrets)
        case dict():
            return {key: _without_marks(part, _join(path, key), secrets) for key, part in value.items()}
        case list():
            return [_without_marks(part, f"{path}[{index}]", secrets) for index, part in enumerate(value)]
        # The wire knows one kind of number.
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _strings(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for part in value.values():
                yield from _strings(part)
        case list():
            for part in value:
                yield from _strings(part)
        case str() if value != UNKNOWN:
            yield value


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
