"""The contents of a backend's stacks: all resources and names in their states, outputs included."""

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
from ops.stack.state import State, StateResource, outputs_in, resources_in
from ops.world.seen import Unread

# The output with the principal of a service principal or a managed identity.
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
"""The components in names of role assignments; the last one is not an identity of a hosted cluster."""
_MAX_ENGINES: Final = 4


@dataclass(frozen=True)
class Contents:
    """The contents of one stack's state; ids and texts are in lower case.

    Attributes:
        owner: the stack's owner id; None before the first `up` with one.
        ids: ARM ids and paths in Graph of the resources that it has created or adopted.
        principals: object ids of its service principals and managed identities.
        texts: every text in its resources.
        infra_ids: infrastructure ids of its hosted clusters, and the name of its vault: the prefixes of HyperShift's
            names of role assignments.
        assignments: scope and name of its role assignments.
    """

    owner: str | None = None
    ids: frozenset[str] = frozenset()
    principals: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    infra_ids: frozenset[str] = frozenset()
    assignments: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, resources: Sequence[StateResource]) -> Self:
        principals = (
            str((resource.get("outputs") or {}).get(_PRINCIPAL_OF[resource["type"]], "")).lower()
            for resource in resources
            if resource["type"] in _PRINCIPAL_OF
        )
        outputs = outputs_in(resources)
        clusters = outputs.get("hostedClusters", {}).values()
        infra_ids = [outputs.get("keyVaultName"), *(c.get("hostedClusterSpec", {}).get("infraID") for c in clusters)]
        inputs = [
            resource.get("inputs") or {} for resource in resources if resource["type"] == resource_types.ROLE_ASSIGNMENT
        ]
        return cls(
            owner=next(
                (
                    resource["id"]
                    for resource in resources
                    if resource["type"] == resource_types.STACK_OWNER and "id" in resource
                ),
                None,
            ),
            ids=frozenset(resource["id"].lower() for resource in resources if resource.get("id", "").startswith("/")),
            principals=frozenset(filter(None, principals)),
            texts=frozenset(
                text.lower()
                for resource in resources
                for key in ("id", "inputs", "outputs")
                for text in _texts(resource.get(key))
            ),
            infra_ids=frozenset(filter(None, infra_ids)),
            assignments=frozenset(
                (str(role["scope"]), str(role["roleAssignmentName"]))
                for role in inputs
                if "scope" in role and "roleAssignmentName" in role
            ),
        )

    def has_infra_id(self, infra_id: str) -> bool:
        """Whether one of its role assignments has a name with this infrastructure id.

        This finds clusters of an interrupted first run, and not those that were moved away.
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
        contents: by name, of those that could be read.
        unread: the reason by name, of those that could not be read completely.
        last_writes: before they were read (`Engine.last_writes`).
    """

    contents: Mapping[str, Contents] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    last_writes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, engine: Engine) -> Self:
        """Read the states of all stacks in the engine's backend; raises CommandError if they cannot be listed."""
        last_writes = engine.last_writes()
        names = sorted({engine.stack, *last_writes})
        contents: dict[str, Contents] = {}
        unread: dict[str, str] = {}
        with ThreadPoolExecutor(_MAX_ENGINES) as pool:
            states = list(pool.map(lambda name: _state(engine, name), names))
        for name, state in zip(names, states, strict=True):
            if isinstance(state, Unread):
                unread[name] = state.why
                continue
            if state["deployment"].get("pending_operations"):
                unread[name] = f"a run was killed; `.venv/bin/idstack recover --stack {name}` finishes it"
            contents[name] = Contents.of(resources_in(state))
        return cls(contents, unread, last_writes)

    @property
    def infra_ids(self) -> frozenset[str]:
        return frozenset[str]().union(*(content.infra_ids for content in self.contents.values()))

    def have_infra_id(self, infra_id: str) -> bool:
        """Whether a stack has a hosted cluster with this infrastructure id, also from an interrupted run."""
        return infra_id in self.infra_ids or any(content.has_infra_id(infra_id) for content in self.contents.values())

    def mentions(self, *identifiers: str) -> bool:
        """Whether a stack mentions one of these: an ARM id, an object id, a client id."""
        return any(
            identifier.lower() in content.texts for identifier in identifiers for content in self.contents.values()
        )

    def of(self, stack: str) -> Contents:
        """The contents of a stack; empty if its state could not be read."""
        return self.contents.get(stack, Contents())

    def others(self, stack: str) -> Mapping[str, Contents]:
        return {name: contents for name, contents in self.contents.items() if name != stack}

    def owned_by(self, owner_id: str) -> str | None:
        """The stack with this owner id; None if no stack that could be read has it."""
        return next((name for name, contents in self.contents.items() if contents.owner == owner_id), None)


def _state(engine: Engine, stack: str) -> State | Unread:
    try:
        own = stack == engine.stack
        return (engine if own else replace(engine, stack=stack, beside=engine.stack)).state()
    except CommandError as error:
        return Unread.because(error)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
            # azuread's ids are paths: `/applications/<object id>`.
            if value.startswith("/") and value.count("/") == 2:
                yield value.rpartition("/")[2]
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
