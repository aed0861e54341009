"""A stack's state and its plan, as the engine writes them (pulumi/pulumi `sdk/go/common/apitype/core.go`).

The types have the keys that the commands use; other keys are kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NotRequired, TypedDict

from identity import resource_types
from identity.outputs import StackOutputs

UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""A value in a plan that is not known before the update (pulumi/pulumi `sdk/go/common/resource/plugin/rpc.go`)."""


class StateResource(TypedDict):
    """One resource (ResourceV3). In a state, secret values are encrypted; in a plan they read `[secret]`.

    `parent` and the members of `dependencies` are URNs; `provider` is `<urn>::<id>`. A list may be null.
    """

    urn: str
    type: str
    custom: bool  # whether a provider manages it; False for components
    id: NotRequired[str]
    parent: NotRequired[str]
    provider: NotRequired[str]
    inputs: NotRequired[dict[str, Any]]
    outputs: NotRequired[dict[str, Any]]
    dependencies: NotRequired[list[str] | None]
    propertyDependencies: NotRequired[dict[str, list[str] | None] | None]
    additionalSecretOutputs: NotRequired[list[str]]
    delete: NotRequired[bool]  # to be deleted after the creation of its replacement
    deletedWith: NotRequired[str]
    retainOnDelete: NotRequired[bool]  # its deletion removes it from the state alone
    pendingReplacement: NotRequired[bool]  # deleted already, before the creation of its replacement
    refreshBeforeUpdate: NotRequired[bool]


class PendingOperation(TypedDict):
    """An operation in progress when the engine was killed (OperationV2)."""

    resource: StateResource
    type: str


class Deployment(TypedDict):
    """The resources of a state, in the order of their creation; null in a stack that never had any."""

    manifest: NotRequired[dict[str, str]]  # `time` is when it was written (RFC 3339)
    resources: NotRequired[list[StateResource] | None]
    pending_operations: NotRequired[list[PendingOperation] | None]
    secrets_providers: NotRequired[dict[str, Any] | None]  # only a passphrase has `state.salt`


class State(TypedDict):
    """The output of `pulumi stack export`."""

    version: int
    deployment: Deployment


class Update(TypedDict):
    """An entry of `pulumi stack history` (pulumi/pulumi `pkg/cmd/pulumi/stack/stack_history.go`)."""

    kind: str  # update, destroy, refresh, import
    startTime: str  # RFC 3339
    endTime: NotRequired[str]  # once it has ended
    result: str  # in-progress, succeeded, failed
    resourceChanges: NotRequired[dict[str, int]]  # by operation, of those that have ended
    environment: NotRequired[dict[str, str]]  # with `pulumi.flag.<option>` for each option of the run


class PlanStep(TypedDict):
    """One step of a preview; `op` is create, update, same and so on. A creation has no old state, a deletion no new."""

    op: str
    urn: str
    oldState: NotRequired[StateResource]
    newState: StateResource
    replaceReasons: NotRequired[list[str] | None]  # the inputs that force a replacement


class Diagnostic(TypedDict):
    """A message of a preview about a resource or the whole program; `severity` is error, warning and so on."""

    urn: NotRequired[str]
    message: str
    severity: str


# Added to the reason of a failed program (pulumi/pulumi `pkg/resource/deploy/program_source.go`, 3.259).
_NO_REASON: Final = "an unhandled error occurred: program exited with non-zero exit code"


class Plan(TypedDict):
    """The output of `pulumi preview --json`; a structured value of the configuration is JSON in a string.

    A failed preview has the steps before the failure, and the errors among its diagnostics.
    """

    config: dict[str, str]
    steps: list[PlanStep]
    diagnostics: NotRequired[list[Diagnostic] | None]


def resources_in(state: State) -> list[StateResource]:
    """The resources of a state, none in a new stack."""
    return state["deployment"].get("resources") or []


def with_resources(state: State, resources: Sequence[StateResource]) -> State:
    """The `state` with these resources instead of its own."""
    return {**state, "deployment": {**state["deployment"], "resources": list(resources)}}


def outputs_of(state: State) -> StackOutputs[str]:
    """The outputs in a state, none of which is secret; empty before the first complete run."""
    return outputs_in(resources_in(state))


def outputs_in_log(lines: Sequence[str]) -> StackOutputs[str] | None:
    """The stack's outputs among the events of a finished run, as its state has them; None if there are none."""
    # A run has a thousand events, of which one is parsed, near the end.
    for line in reversed(lines):
        if f'"type":"{resource_types.STACK}"' in line and '"resOutputsEvent"' in line:
            metadata = json.loads(line)["resOutputsEvent"]["metadata"]
            if metadata["type"] == resource_types.STACK:
                return outputs_in([metadata["new"]])
    return None


def events_in(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """The events of a log, each a line of JSON (pulumi/pulumi `sdk/go/common/apitype/events.go`, EngineEvent).

    A killed engine may leave half a line at the end.
    """
    for line in lines:
        with suppress(ValueError):
            yield json.loads(line)


def outputs_in(resources: Iterable[StateResource]) -> StackOutputs[str]:
    """The outputs of the stack among the resources of its state."""
    for resource in resources:
        if resource["type"] == resource_types.STACK:
            outputs: Any = resource.get("outputs") or {}
            typed: StackOutputs[str] = outputs
            return typed
    return {}


def without(state: State, urns: Collection[str]) -> State:
    """The `state` without these resources and without dependencies on them."""
    kept: list[StateResource] = [
        {
            **resource,
            "dependencies": [urn for urn in resource.get("dependencies") or () if urn not in urns],
            "propertyDependencies": {
                name: [urn for urn in needed or () if urn not in urns]
                for name, needed in (resource.get("propertyDependencies") or {}).items()
            },
        }
        for resource in resources_in(state)
        if resource["urn"] not in urns
    ]
    return with_resources(state, kept)


def name_of(urn: str) -> str:
    """The name of a resource in the program, from its URN."""
    return urn.rpartition("::")[2]


def type_of(urn: str) -> str:
    """The type of a resource, from its URN, which has the types of its parents before it."""
    return urn.rpartition("::")[0].rpartition("::")[2].rpartition("$")[2]


def errors_of(plan: Plan) -> list[Diagnostic]:
    """The errors of a preview, without the engine's generic message if there are others."""
    errors = [diagnostic for diagnostic in plan.get("diagnostics") or () if diagnostic["severity"] == "error"]
    return [error for error in errors if _NO_REASON not in error["message"].lower()] or errors


def provider_urn(provider: str) -> str:
    """The URN of a provider, from a reference to it (`<urn>::<id>`); empty for none."""
    return provider.rpartition("::")[0]
