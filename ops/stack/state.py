"""A stack's state and its plan, as the engine writes them (pulumi/pulumi `sdk/go/common/apitype/core.go`).

Only what the commands read or write. Other keys are there, too, and are kept.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


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
    pendingReplacement: NotRequired[bool]  # deleted already, by a replacement that has yet to create
    refreshBeforeUpdate: NotRequired[bool]


class Deployment(TypedDict):
    """The resources of a state, in the order of their creation; null in a stack that never had one."""

    resources: NotRequired[list[StateResource] | None]


class State(TypedDict):
    """What `pulumi stack export` prints."""

    version: int
    deployment: Deployment


class PlanStep(TypedDict):
    """One step of a preview; `op` is create, update, same and so on."""

    op: str
    urn: str
    newState: StateResource


class Plan(TypedDict):
    """What `pulumi preview --json` prints; a structured value of the configuration is JSON in a string."""

    config: dict[str, str]
    steps: list[PlanStep]


def name_of(urn: str) -> str:
    """The name of a resource in the program, out of its URN."""
    return urn.rpartition("::")[2]


def provider_urn(provider: str) -> str:
    """The URN of a provider, out of a reference to it (`<urn>::<id>`); empty for none."""
    return provider.rpartition("::")[0]
