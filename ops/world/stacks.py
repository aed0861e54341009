"""What the stacks of a backend still have: everything that their states, outputs included, name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, FEDERATED_IDENTITIES, OPTIONAL
from identity.naming import role_assignment_name
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import State, StateResource, outputs_in

# What the outputs of an application's or a managed identity's resource call its principal.
_PRINCIPAL_OF: Final[Mapping[str, str]] = {
    resource_types.SERVICE_PRINCIPAL: "objectId",
    resource_types.MANAGED_IDENTITY: "principalId",
}
COMPONENTS: Final = (
    *(row.component for row in CONTROL_PLANE),
    *(row.component for row in FEDERATED_IDENTITIES),
    *(row.component for row in OPTIONAL),
    "key-vault-user",
)
"""Of role assignments, in whose names they are; the last one no identity of a hosted cluster has."""
_AT_ONCE: Final = 4  # engines that read a state each


@dataclass(frozen=True)
class Contents:
    """What the state of one stack has; ids and texts are in lower case.

    Attributes:
        owner: the stack's owner id; None before the first `up` with one.
        things: ids of what it made or adopted: of ARM, and paths in Graph.
        principals: object ids of its service principals and managed identities.
        texts: every text in its resources.
        infra_ids: infrastructure ids of its hosted clusters, and the name of its vault: what HyperShift's names of role
            assignments begin with.
        assignments: scope and name of its role assignments.
    """

    owner: str | None = None
    things: frozenset[str] = frozenset()
    principals: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    infra_ids: frozenset[str] = frozenset()
    assignments: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, resources: Sequence[StateResource]) -> Self:
        """Read a state's resources."""
        principals = (
            str((each.get("outputs") or {}).get(_PRINCIPAL_OF[each["type"]], "")).lower()
            for each in resources
            if each["type"] in _PRINCIPAL_OF
        )
        inputs = [each.get("inputs") or {} for each in resources if each["type"] == resource_types.ROLE_ASSIGNMENT]
        return cls(
            owner=next(
                (each["id"] for each in resources if each["type"] == resource_types.STACK_OWNER and "id" in each), None
            ),
            things=frozenset(each["id"].lower() for each in resources if each.get("id", "").startswith("/")),
            principals=frozenset(filter(None, principals)),
            texts=frozenset(text.lower() for each in resources for text in _texts(each)),
            infra_ids=frozenset(_infra_ids(resources)),
            assignments=frozenset(
                (str(each["scope"]), str(each["roleAssignmentName"]))
                for each in inputs
                if "scope" in each and "roleAssignmentName" in each
            ),
        )

    def has_infra_id(self, infra_id: str) -> bool:
        """Whether one of its role assignments has the name of this infrastructure id's: also of a first run that did
        not end, and of no cluster that `idstack split` has moved away.
        """
        return any(
            role_assignment_name(infra_id, component, scope) == name.lower()
            for scope, name in self.assignments
            for component in COMPONENTS
        )


@dataclass(frozen=True)
class Stacks:
    """The stacks of a backend.

    Attributes:
        names: of all of them.
        contents: what those have that could be read, by name.
        unreadable: why, by name, for those that could not be read or are half done.
    """

    names: tuple[str, ...]
    contents: Mapping[str, Contents] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, engine: Engine) -> Self:
        """Read the states of all stacks in the backend of `engine`'s; raises CommandError if they cannot be listed."""
        names = sorted({engine.stack, *engine.stacks()})
        contents: dict[str, Contents] = {}
        unreadable: dict[str, str] = {}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            states = list(pool.map(lambda name: _state(engine, name), names))
        for name, state in zip(names, states, strict=True):
            if isinstance(state, CommandError):
                unreadable[name] = str(state)
                continue
            if state["deployment"].get("pending_operations"):
                unreadable[name] = f"a run was killed; `make recover STACK={name}` finishes it"
            contents[name] = Contents.of(state["deployment"].get("resources") or [])
        return cls(tuple(names), contents, unreadable)

    @property
    def infra_ids(self) -> frozenset[str]:
        """Those of all stacks (`Contents.infra_ids`)."""
        return frozenset[str]().union(*(each.infra_ids for each in self.contents.values()))

    def have_infra_id(self, infra_id: str) -> bool:
        """Whether a stack has a hosted cluster with this infrastructure id, also from a run that did not end."""
        return infra_id in self.infra_ids or any(each.has_infra_id(infra_id) for each in self.contents.values())

    def name(self, *identifiers: str) -> bool:
        """Whether a stack names one of these: an ARM id, an object id, a client id."""
        return any(each.lower() in stack.texts for each in identifiers for stack in self.contents.values())

    def of(self, stack: str) -> Contents:
        """What a stack has; nothing if its state could not be read."""
        return self.contents.get(stack, Contents())

    def besides(self, stack: str) -> Mapping[str, Contents]:
        """What the others have."""
        return {name: each for name, each in self.contents.items() if name != stack}

    def owned_by(self, owner_id: str) -> str | None:
        """The stack with this owner id; None if none that could be read has it."""
        return next((name for name, each in self.contents.items() if each.owner == owner_id), None)


def _state(engine: Engine, stack: str) -> State | CommandError:
    try:
        own = stack == engine.stack
        return (engine if own else replace(engine, stack=stack, beside=engine.stack)).state()
    except CommandError as error:
        return error


def _texts(resource: StateResource) -> Iterator[str]:
    yield from _strings({key: resource.get(key) for key in ("id", "inputs", "outputs")})


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
            # azuread's ids are paths: `/applications/<object id>`.
            if value.startswith("/") and value.count("/") == len(("", "")):
                yield value.rpartition("/")[2]
        case Mapping():
            for each in value.values():
                yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)


def _infra_ids(resources: Sequence[StateResource]) -> Iterator[str]:
    outputs = outputs_in(resources)
    yield from filter(None, [outputs.get("keyVaultName")])
    for cluster in outputs.get("hostedClusters", {}).values():
        yield from filter(None, [cluster.get("hostedClusterSpec", {}).get("infraID")])
