"""The steps of an engine run, from its event log, by identity and kind of resource.

The log has a line of JSON for each event (pulumi/pulumi `sdk/go/common/apitype/events.go`, EngineEvent).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from identity import resource_types
from ops.stack.state import name_of, type_of
from ops.world.ownership import Ownership, ResourceOwner


class Operation(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


class ResourceKind(StrEnum):
    """The part of a resource in an identity's chain; the columns of the plan, from left to right."""

    PRINCIPAL = "principal"
    CERTIFICATE = "certificate"
    SECRET = "secret"
    ROLE = "role"
    CLASS = "class"
    MOUNT = "mount"
    OTHER = "other"


_KINDS: Final[Mapping[str, ResourceKind]] = {
    resource_types.APPLICATION: ResourceKind.PRINCIPAL,
    resource_types.SERVICE_PRINCIPAL: ResourceKind.PRINCIPAL,
    resource_types.MANAGED_IDENTITY: ResourceKind.PRINCIPAL,
    resource_types.FEDERATED_CREDENTIAL: ResourceKind.PRINCIPAL,
    resource_types.RENEWAL_SCHEDULE: ResourceKind.CERTIFICATE,
    resource_types.CERTIFICATE: ResourceKind.CERTIFICATE,
    resource_types.REGISTERED_CERTIFICATE: ResourceKind.CERTIFICATE,
    resource_types.SIGN_IN_GATE: ResourceKind.CERTIFICATE,
    resource_types.CREDENTIAL_SECRET: ResourceKind.SECRET,
    resource_types.ROLE_ASSIGNMENT: ResourceKind.ROLE,
    resource_types.HSM_ROLE_ASSIGNMENT: ResourceKind.ROLE,
    resource_types.SECRET_PROVIDER_CLASS: ResourceKind.CLASS,
    resource_types.DEPLOYMENT: ResourceKind.MOUNT,
}
_PROVIDERS: Final = "pulumi:"
# The operations of the plan by the engine's; `same`, `read` and the like are none.
_OPERATIONS: Final[Mapping[str, Operation]] = {
    "create": Operation.CREATE,
    "import": Operation.CREATE,
    "update": Operation.UPDATE,
    "delete": Operation.DELETE,
    "replace": Operation.REPLACE,
    "create-replacement": Operation.REPLACE,
    "delete-replaced": Operation.REPLACE,
    "import-replacement": Operation.REPLACE,
}


@dataclass(frozen=True)
class ResourceStep:
    """What a run of a stack does with one resource.

    `properties` are the paths that differ: for a replacement those that force it, where the provider names them.
    `is_protected`: the state protects it against deletion. `restarts`: it is a Deployment whose pods restart.
    """

    stack: str
    operation: Operation
    type: str
    name: str
    owner: ResourceOwner
    properties: tuple[str, ...] = ()
    is_protected: bool = False
    restarts: bool = False

    @property
    def kind(self) -> ResourceKind:
        return _KINDS.get(self.type, ResourceKind.OTHER)


@dataclass(frozen=True)
class RunLog:
    """The steps of one run, and the engine's and the program's errors."""

    steps: tuple[ResourceStep, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass
class _Change:
    operations: set[Operation] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    old: dict[str, Any] | None = None
    new: dict[str, Any] | None = None


def read(lines: Iterable[str], stack: str) -> RunLog:
    """Parse an event log of a stack; a line that was truncated by a kill is left out."""
    changes: dict[str, _Change] = {}
    parents: dict[str, str] = {}
    errors: list[str] = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            parents[metadata["urn"]] = (metadata.get("new") or metadata.get("old") or {}).get("parent", "")
            _note(changes, metadata)
        diagnostic = event.get("diagnosticEvent") or {}
        if diagnostic.get("severity") == "error" and (text := _plain(str(diagnostic.get("message", "")))):
            errors.append(text)
    ownership = Ownership(parents)
    steps = (_step(stack, urn, ownership.owner(urn), change) for urn, change in changes.items() if change.operations)
    return RunLog(tuple(steps), tuple(dict.fromkeys(errors)))


def _note(changes: dict[str, _Change], metadata: Mapping[str, Any]) -> None:
    urn, operation = metadata["urn"], _OPERATIONS.get(metadata["op"])
    state = metadata.get("new") or metadata.get("old") or {}
    is_of_state = type_of(urn).startswith(_PROVIDERS) or type_of(urn) == resource_types.STACK_OWNER
    if operation is None or not state.get("custom") or is_of_state:
        return
    change = changes.setdefault(urn, _Change())
    change.operations.add(operation)
    change.keys += metadata.get("keys") or []
    change.differences += list(metadata.get("detailedDiff") or metadata.get("diffs") or [])
    change.old = change.old or metadata.get("old")
    change.new = change.new or metadata.get("new")


def _step(stack: str, urn: str, owner: ResourceOwner, change: _Change) -> ResourceStep:
    # A deletion and a creation under one URN are a replacement as well.
    is_replaced = Operation.REPLACE in change.operations or {Operation.CREATE, Operation.DELETE} <= change.operations
    operation = Operation.REPLACE if is_replaced else next(iter(change.operations))
    properties = () if operation is Operation.DELETE else (change.keys or change.differences)
    return ResourceStep(
        stack,
        operation,
        type_of(urn),
        name_of(urn),
        owner,
        tuple(dict.fromkeys(properties)),
        is_protected=bool((change.old or {}).get("protect")),
        restarts=type_of(urn) == resource_types.DEPLOYMENT and _restarts(operation, change),
    )


def _restarts(operation: Operation, change: _Change) -> bool:
    """Whether pods restart: those of a Deployment whose template changes."""
    if operation is not Operation.UPDATE:
        return operation is Operation.REPLACE
    old, new = (((state or {}).get("inputs") or {}).get("spec") or {} for state in (change.old, change.new))
    return bool(old.get("template") != new.get("template"))


def _plain(text: str) -> str:
    """The text without the engine's colour marks (`<{%reset%}>`) and surrounding spaces."""
    parts = text.split("<{%")
    return "".join([parts[0], *(part.partition("%}>")[2] for part in parts[1:])]).strip()
