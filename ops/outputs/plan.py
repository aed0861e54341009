"""The steps of an engine run, from its event log, and their tables by identity and kind of resource."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from identity import resource_types
from ops.stack.state import events_in, name_of, type_of
from ops.world.ownership import Ownership, ResourceOwner


class Operation(StrEnum):
    """What a run does with a resource."""

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
# The engine's colour marks in a message.
_COLOUR: Final = re.compile(r"<\{%.*?%\}>")
# The operations of the plan by the engine's; `same`, `read` and the like are none.
_OPERATIONS: Final[Mapping[str, Operation]] = {
    **{operation.value: operation for operation in Operation},
    "import": Operation.CREATE,
    **dict.fromkeys(("create-replacement", "delete-replaced", "import-replacement"), Operation.REPLACE),
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
        """Its part in an identity's chain."""
        return _KINDS.get(self.type, ResourceKind.OTHER)


@dataclass(frozen=True)
class RunLog:
    """The steps of one run, and the engine's and the program's errors."""

    steps: tuple[ResourceStep, ...] = ()
    errors: tuple[str, ...] = ()


def read(lines: Iterable[str], stack: str) -> RunLog:
    """Parse an event log of a stack."""
    changes: dict[str, list[Mapping[str, Any]]] = {}
    parents: dict[str, str] = {}
    errors: list[str] = []
    for event in events_in(lines):
        if "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            urn, state = metadata["urn"], metadata.get("new") or metadata.get("old") or {}
            parents[urn] = state.get("parent", "")
            is_of_state = type_of(urn).startswith("pulumi:") or type_of(urn) == resource_types.STACK_OWNER
            if metadata["op"] in _OPERATIONS and state.get("custom") and not is_of_state:
                changes.setdefault(urn, []).append(metadata)
        diagnostic = event.get("diagnosticEvent") or {}
        if diagnostic.get("severity") == "error" and (text := _COLOUR.sub("", diagnostic.get("message") or "").strip()):
            errors.append(text)
    ownership = Ownership(parents)
    steps = (_step(stack, urn, ownership.owner(urn), events) for urn, events in changes.items())
    return RunLog(tuple(steps), tuple(dict.fromkeys(errors)))


def _step(stack: str, urn: str, owner: ResourceOwner, events: Sequence[Mapping[str, Any]]) -> ResourceStep:
    """The step of one URN, by the metadata of its events."""
    operations = {_OPERATIONS[event["op"]] for event in events}
    # A deletion and a creation under one URN are a replacement as well.
    is_replaced = Operation.REPLACE in operations or {Operation.CREATE, Operation.DELETE} <= operations
    operation = Operation.REPLACE if is_replaced else next(iter(operations))
    keys = [key for event in events for key in event.get("keys") or ()]
    differences = [path for event in events for path in event.get("detailedDiff") or event.get("diffs") or ()]
    states: list[Any] = [next((event[side] for event in events if event.get(side)), {}) for side in ("old", "new")]
    # The pods of a Deployment restart if its template changes.
    templates = [((state.get("inputs") or {}).get("spec") or {}).get("template") for state in states]
    is_changed = operation is Operation.UPDATE and templates[0] != templates[1]
    return ResourceStep(
        stack,
        operation,
        type_of(urn),
        name_of(urn),
        owner,
        () if operation is Operation.DELETE else tuple(dict.fromkeys(keys or differences)),
        is_protected=bool(states[0].get("protect")),
        restarts=type_of(urn) == resource_types.DEPLOYMENT and (is_replaced or is_changed),
    )


_SIGNS: Final = {Operation.CREATE: "+", Operation.UPDATE: "~", Operation.REPLACE: "+-", Operation.DELETE: "-"}
_LEGEND: Final = "+ created, ~ updated, +- replaced, - deleted"
_PLAN: Final = "plan"
# The maximum of rows in a comment; --json has all of them.
_MAX_ROWS: Final = 40
# Characters that Markdown or GitHub interpret, as HTML entities.
_MARKS: Final = str.maketrans({mark: f"&#{ord(mark)};" for mark in "&\\`*_[]<>|~#!@"})
# A table for a screen and for Markdown: lines of plain text by heading.
Lines: TypeAlias = Sequence[Mapping[str, str]]


def counts_by_owner(steps: Iterable[ResourceStep]) -> dict[ResourceOwner, dict[ResourceKind, Counter[Operation]]]:
    """Resources per operation, by identity and kind; those that all clusters share come first."""
    rows: dict[ResourceOwner, dict[ResourceKind, Counter[Operation]]] = {}
    for step in sorted(steps, key=lambda step: step.owner):
        rows.setdefault(step.owner, {}).setdefault(step.kind, Counter())[step.operation] += 1
    return rows


def lost(steps: Iterable[ResourceStep]) -> list[ResourceStep]:
    """The steps that replace or delete, also those of roles and mounts."""
    return [step for step in steps if step.operation in (Operation.REPLACE, Operation.DELETE)]


def why(step: ResourceStep) -> str:
    """Why a resource is replaced or deleted."""
    if step.operation is Operation.DELETE:
        return "no longer in the configuration or the program"
    return ", ".join(step.properties) or "the provider names no property"


def markdown(log: RunLog) -> str:
    """The plan for a pull request: how many resources change, a table by identity, and what is replaced or deleted."""
    counts = Counter(step.operation for step in log.steps)
    summary = f"{cell(counts)} ({_LEGEND})" if counts else "failed" if log.errors else "no changes"
    lines = [f"**{escaped(summary)}**", ""]
    for title, rows, _ in sections(log.steps):
        lines += [] if title == _PLAN else [f"**{title}**", ""]
        lines += [*markdown_table(rows), ""] if rows else []
    for error in log.errors:
        lines += [*(f"    {line}" for line in error.splitlines()), ""]
    return "\n".join(lines)


def sections(steps: Sequence[ResourceStep]) -> Iterator[tuple[str, Lines, str]]:
    """Title, lines and note of the tables: the plan, and what is replaced or deleted, if anything is."""
    plan = [
        {**owner_cells(owner), **{kind.value: cell(row.get(kind, {})) for kind in ResourceKind}}
        for owner, row in counts_by_owner(steps).items()
    ]
    yield _PLAN, plan, _LEGEND
    if found := lost(steps):
        lines = [
            {
                "resource": step.name,
                "operation": step.operation.value,
                "reason": why(step),
                "protected": "yes" if step.is_protected else "",
            }
            for step in found
        ]
        yield "replaced or deleted", lines, ""


def cell(counts: Mapping[Operation, int]) -> str:
    """`+2 ~1`: resources per operation; empty for none."""
    return " ".join(f"{sign}{counts[operation]}" for operation, sign in _SIGNS.items() if counts.get(operation))


def owner_cells(owner: ResourceOwner) -> dict[str, str]:
    """The first two cells of a line about an identity, a cluster or the stack."""
    shared = "(the cluster's own)" if owner.cluster else "(the stack's own)"
    return {"cluster": owner.cluster, "identity": owner.identity or shared}


def markdown_table(rows: Lines) -> Iterator[str]:
    """The lines of a table in Markdown, of which there must be one."""
    names = list(rows[0])
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows[:_MAX_ROWS]:
        yield f"| {' | '.join(escaped(row[name]) for name in names)} |"
    if len(rows) > _MAX_ROWS:
        yield from ("", f"... and {len(rows) - _MAX_ROWS} more")


def escaped(text: str) -> str:
    """Text that Markdown shows as it is: anybody may propose a configuration with such names."""
    return " ".join(text.split()).translate(_MARKS)
