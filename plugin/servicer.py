"""The calls of the engine (proto/pulumi/provider.proto of pulumi/pulumi), turned into those of a `Provider`."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Lock, Thread
from typing import Any, Final, TypeVar

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from plugin.provider import CheckFailure, InitializationError, PluginError, Provider, Resource
from plugin.values import Props, from_struct, to_struct

_T = TypeVar("_T")

_AGAIN: Final = "run the command again"


class PluginInterruptedError(PluginError):
    """The engine was interrupted, so what waited has ended."""


class Cancellation:
    """Whether the engine has cancelled, and what waits for that; safe for many threads. Nothing in it polls."""

    def __init__(self) -> None:
        self._cancelled: Future[None] = Future()
        self._lock = Lock()

    def cancel(self) -> None:
        """End every pause and every call under way; may be called again."""
        with self._lock:
            if not self._cancelled.done():
                self._cancelled.set_result(None)

    def pause(self, seconds: float) -> None:
        """Wait as `time.sleep` does; raises PluginInterruptedError, at once, when the engine cancels."""
        wait([self._cancelled], timeout=seconds)
        if self._cancelled.done():
            raise PluginInterruptedError(f"interrupted while it waited; {_AGAIN}")

    def run(self, work: Callable[[], _T], *, grace: float = 0.0) -> _T:
        """The result of `work`; raises what it raises, or Interrupted when the engine cancels.

        It runs in a daemon thread with the caller's context, and is left behind `grace` seconds after the cancellation.
        """
        if self._cancelled.done():
            raise PluginInterruptedError(f"interrupted before it began; {_AGAIN}")
        outcome: Future[_T] = Future()
        Thread(target=copy_context().run, args=(_settle, outcome, work), daemon=True).start()
        either: tuple[Future[Any], ...] = (outcome, self._cancelled)
        wait(either, return_when=FIRST_COMPLETED)
        wait([outcome], timeout=grace)
        if outcome.done():
            return outcome.result()
        if grace:
            raise PluginInterruptedError(f"interrupted during a request, which may have taken effect; {_AGAIN}")
        raise PluginInterruptedError(f"interrupted; {_AGAIN}")


def _settle(outcome: Future[Any], work: Callable[[], Any]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # the waiting thread raises it
        outcome.set_exception(error)


_PROCESS: Final = Cancellation()
"""One engine, one plugin, one process: every call of it is cancelled together."""

cancel = _PROCESS.cancel
pause = _PROCESS.pause
interruptible = _PROCESS.run


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


_Request = TypeVar("_Request")
_Response = TypeVar("_Response")

_KINDS: Final = {
    ("add", False): provider_pb2.PropertyDiff.ADD,
    ("add", True): provider_pb2.PropertyDiff.ADD_REPLACE,
    ("delete", False): provider_pb2.PropertyDiff.DELETE,
    ("delete", True): provider_pb2.PropertyDiff.DELETE_REPLACE,
    ("update", False): provider_pb2.PropertyDiff.UPDATE,
    ("update", True): provider_pb2.PropertyDiff.UPDATE_REPLACE,
}

# The calls whose effect is lost without their answer, and for how many seconds Cancel lets them go on.
_WRITES: Final = frozenset({"Create", "Update", "Delete"})
_GRACE: Final = 1.5
# Where gRPC carries a `google.rpc.Status`, in which the engine finds what was made before a create or update failed.
_DETAILS: Final = "grpc-status-details-bin"


def _answer(
    method: Callable[[Servicer, _Request, grpc.ServicerContext], _Response],
) -> Callable[[Servicer, _Request, grpc.ServicerContext], _Response]:
    """Turn exceptions into statuses: a `PluginError` is its message, of anything else only the type is shown.

    The text of an unforeseen exception may quote a key, and the engine shows what a plugin writes to its standard error
    and keeps it in its events: the log gets the trace without the text, too.

    The engine's Cancel ends every call: at once what changes nothing, after a moment a write, whose answer the engine
    needs for its state.
    """
    grace = _GRACE if method.__name__ in _WRITES else 0.0

    def answered(self: Servicer, request: _Request, context: grpc.ServicerContext) -> _Response:
        try:
            return interruptible(lambda: method(self, request, context), grace=grace)
        except InitializationError as error:
            context.set_trailing_metadata(((_DETAILS, _status_of(error)),))
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except PluginError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:
            kind, trace = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
            logging.getLogger(__name__).error("%s failed: %s\n%s", method.__name__, kind, trace)
            message = f"{method.__name__} failed with {kind}, a defect of the plugin; its standard error has the place"
            context.abort(grpc.StatusCode.INTERNAL, message)
        raise AssertionError("abort raises")

    return answered


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """The protocol's calls, answered by a provider. What it logs goes to the engine."""

    def __init__(self, provider: Provider, log: EngineLog) -> None:
        self._provider = provider
        self._log = log

    @_answer
    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self._provider.version)

    @_answer
    def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        return provider_pb2.GetSchemaResponse(schema="{}")

    @_answer
    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        old = from_struct(request.olds) if request.HasField("olds") else None
        checked = self._provider.check_config(request.urn, old, from_struct(request.news))
        return _check_response(checked.inputs, checked.failures)

    @_answer
    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        replacing = self._provider.replacing(from_struct(request.old_inputs), from_struct(request.news))
        if replacing:
            return provider_pb2.DiffResponse(
                changes=provider_pb2.DiffResponse.DIFF_SOME, diffs=replacing, replaces=replacing
            )
        # The engine then compares the inputs itself and updates the provider in place, replacing none of its resources.
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_UNKNOWN)

    @_answer
    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        self._provider.configure(from_struct(request.args))
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=False)

    @_answer
    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        returned = self._provider.invoke(request.tok, from_struct(request.args))
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(returned))
        return response

    @_answer
    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        old = from_struct(request.olds) if request.olds.fields else None
        checked = self._resource(request.urn).check(request.urn, old, from_struct(request.news))
        return _check_response(checked.inputs, checked.failures)

    @_answer
    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        new = _ignoring(request.ignoreChanges, from_struct(request.old_inputs), from_struct(request.news))
        diff = self._resource(request.urn).diff(
            request.urn, request.id, from_struct(request.old_inputs), from_struct(request.olds), new
        )
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if diff.changes else provider_pb2.DiffResponse.DIFF_NONE,
            replaces=[path for path, change in diff.changes.items() if change.replace],
            diffs=sorted({path.split(".")[0].split("[")[0] for path in diff.changes if diff.has_names}),
            deleteBeforeReplace=diff.delete_before_replace,
            detailedDiff={
                path: provider_pb2.PropertyDiff(kind=_KINDS[change.kind, change.replace], inputDiff=change.input)
                for path, change in diff.changes.items()
            },
            # As the real plugins: without a change the engine has no details to show.
            hasDetailedDiff=bool(diff.changes),
        )

    @_answer
    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        inputs = from_struct(request.properties)
        with logging_to(partial(self._log.info, request.urn)):
            created = self._resource(request.urn).create(request.urn, inputs, preview=request.preview)
        return provider_pb2.CreateResponse(id=created.id, properties=to_struct(created.state))

    @_answer
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        read = self._resource(request.urn).read(
            request.urn, request.id, from_struct(request.inputs), from_struct(request.properties)
        )
        if read is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(id=read.id, inputs=to_struct(read.inputs), properties=to_struct(read.state))

    @_answer
    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        old_inputs = from_struct(request.old_inputs)
        with logging_to(partial(self._log.info, request.urn)):
            state = self._resource(request.urn).update(
                request.urn,
                request.id,
                old_inputs,
                from_struct(request.olds),
                _ignoring(request.ignoreChanges, old_inputs, from_struct(request.news)),
                preview=request.preview,
            )
        return provider_pb2.UpdateResponse(properties=to_struct(state))

    @_answer
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        self._resource(request.urn).delete(
            request.urn, request.id, from_struct(request.old_inputs), from_struct(request.properties)
        )
        return empty_pb2.Empty()

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        # The engine ends the process itself once calls under way have answered.
        cancel()
        return empty_pb2.Empty()

    def _resource(self, urn: str) -> Resource:
        # urn:pulumi:<stack>::<project>::<parent type>$<type>::<name>
        qualified_type = urn.split("::")[2]
        return self._provider.resource(qualified_type.rsplit("$", 1)[-1])


def _status_of(error: InitializationError) -> bytes:
    detail = any_pb2.Any()
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(id=error.id, properties=to_struct(error.state), reasons=[str(error)])
    )
    code: int = grpc.StatusCode.UNKNOWN.value[0]
    return status_pb2.Status(code=code, message=str(error), details=[detail]).SerializeToString()


def _check_response(inputs: Props, failures: Iterable[CheckFailure]) -> provider_pb2.CheckResponse:
    return provider_pb2.CheckResponse(
        inputs=to_struct(inputs),
        failures=[provider_pb2.CheckFailure(property=failure.property, reason=failure.reason) for failure in failures],
    )


def _ignoring(paths: Iterable[str], old: Props, new: Props) -> Props:
    """New inputs with top-level `ignore_changes` properties as they were; the engine has done the nested ones."""
    kept: dict[str, Any] = {path: old[path] for path in paths if path in old}
    return {**new, **kept}
