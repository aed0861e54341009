"""A stack's state and its plan, as the engine writes them (pulumi/pulumi `sdk/go/common/apitype/core.go`).

Only what the commands read or write. Other keys are there, too, and are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
    custom: bool  # whether a provider has it, and not the program alone
    id: NotRequired[str]
    parent: NotRequired[str]
    provider: NotRequired[str]
    inputs: NotRequired[dict[str, Any]]
    outputs: NotRequired[dict[str, Any]]
    dependencies: NotRequired[list[str] | None]
    propertyDependencies: NotRequired[dict[str, list[str] | None] | None]
    additionalSecretOutputs: NotRequired[list[str]]
    delete: NotRequired[bool]  # waits for its deletion, after what took its place was made
    deletedWith: NotRequired[str]
    retainOnDelete: NotRequired[bool]  # its deletion takes it out of the state and leaves it in the world
    pendingReplacement: NotRequired[bool]  # deleted already, by a replacement that has yet to create
    refreshBeforeUpdate: NotRequired[bool]


class PendingOperation(TypedDict):
    """What an engine had begun when it was killed (OperationV2)."""

    resource: StateResource
    type: str


class Manifest(TypedDict):
    """Of a state: `time`, RFC 3339, is when it was written."""

    time: str


class ProviderState(TypedDict):
    """What a secrets provider needs to decrypt; only a passphrase has a salt."""

    salt: NotRequired[str]


class SecretsProvider(TypedDict):
    """What encrypts the secrets of a state."""

    type: str
    state: NotRequired[ProviderState]


class Deployment(TypedDict):
    """The resources of a state, in the order of their creation; null in a stack that never had one."""

    manifest: NotRequired[Manifest]
    resources: NotRequired[list[StateResource] | None]
    pending_operations: NotRequired[list[PendingOperation] | None]
    secrets_providers: NotRequired[SecretsProvider | None]


class State(TypedDict):
    """What `pulumi stack export` prints."""

    version: int
    deployment: Deployment


class Update(TypedDict):
    """An entry of `pulumi stack history` (pulumi/pulumi `pkg/cmd/pulumi/stack/stack_history.go`)."""

    kind: str  # update, destroy, refresh, import
    startTime: str  # RFC 3339
    result: str  # in-progress, succeeded, failed
    resourceChanges: NotRequired[dict[str, int]]  # by operation, of those that have ended


class PlanStep(TypedDict):
    """One step of a preview; `op` is create, update, same and so on. A creation has no old state, a deletion no new."""

    op: str
    urn: str
    oldState: NotRequired[StateResource]
    newState: StateResource
    replaceReasons: NotRequired[list[str] | None]  # the inputs that force a replacement


class Diagnostic(TypedDict):
    """What a preview says about a resource, or about the whole program; `severity` is error, warning and so on."""

    urn: NotRequired[str]
    message: str
    severity: str


# Added to whatever ended the program (pulumi/pulumi `pkg/resource/deploy/program_source.go`; the rest seen with 3.259).
_NO_REASON: Final = "an unhandled error occurred: program exited with non-zero exit code"


class Plan(TypedDict):
    """What `pulumi preview --json` prints; a structured value of the configuration is JSON in a string.

    A preview that failed has the steps that it came to, and the errors among its diagnostics.
    """

    config: dict[str, str]
    steps: list[PlanStep]
    diagnostics: NotRequired[list[Diagnostic] | None]


def outputs_of(state: State) -> StackOutputs[str]:
    """The outputs in a state, none of which is secret; empty before the first complete run."""
    return outputs_in(state["deployment"].get("resources") or ())


def outputs_in(resources: Iterable[StateResource]) -> StackOutputs[str]:
    """Those of the stack among the resources of its state."""
    for resource in resources:
        if resource["type"] == resource_types.STACK:
            outputs: Any = resource.get("outputs") or {}
            found: StackOutputs[str] = outputs
            return found
    return {}


def without(state: State, urns: Collection[str]) -> State:
    """The `state` without these resources and without the dependencies of others on them."""
    kept: list[StateResource] = [
        {
            **each,
            "dependencies": [urn for urn in each.get("dependencies") or () if urn not in urns],
            "propertyDependencies": {
                name: [urn for urn in needed or () if urn not in urns]
                for name, needed in (each.get("propertyDependencies") or {}).items()
            },
        }
        for each in state["deployment"].get("resources") or ()
        if each["urn"] not in urns
    ]
    return {**state, "deployment": {**state["deployment"], "resources": kept}}


def name_of(urn: str) -> str:
    """The name of a resource in the program, out of its URN."""
    return urn.rpartition("::")[2]


def type_of(urn: str) -> str:
    """The type of a resource, out of its URN, which has the types of its parents before."""
    return urn.rpartition("::")[0].rpartition("::")[2].rpartition("$")[2]


def errors_of(plan: Plan) -> list[Diagnostic]:
    """The errors of a preview, none if it succeeded; what the engine adds to them only if it is all there is."""
    errors = [each for each in plan.get("diagnostics") or () if each["severity"] == "error"]
    return [error for error in errors if _NO_REASON not in error["message"].lower()] or errors


def provider_urn(provider: str) -> str:
    """The URN of a provider, out of a reference to it (`<urn>::<id>`); empty for none."""
    return provider.rpartition("::")[0]
