"""The contents of a backend's stacks: all resources and names in their states, outputs included.

What would harm another stack is refused: a hosted cluster's move by configuration alone, and a second infraID.

With such a move the first stack would delete the cluster's applications, and the second could not create its secrets,
whose names are kept. `pulumi state move` moves it without that. Decision record 0063.

Names of role assignments, networks and managed identities derive from the infrastructure id: one cluster would take
over the other's. The other states are read only for a cluster that is new in the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final, Self

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, FEDERATED_IDENTITIES, OPTIONAL
from identity.naming import dashed, role_assignment_name
from identity.settings.stack_file import written_for
from ops.stack.chosen_stack import file_of, stack_names
from ops.stack.configuration import named_clusters, shared_stack_of
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import StateResource, name_of, outputs_in, resources_in
from ops.world.seen import Unread, attempt

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
        by_type = [(resource["type"], resource.get("id"), resource.get("inputs") or {}) for resource in resources]
        owners = (id for type_, id, _ in by_type if type_ == resource_types.STACK_OWNER and id is not None)
        texts = (_texts(resource.get(key)) for resource in resources for key in ("id", "inputs", "outputs"))
        return cls(
            owner=next(owners, None),
            ids=frozenset(id.lower() for _, id, _ in by_type if id is not None and id.startswith("/")),
            principals=frozenset(filter(None, principals)),
            texts=frozenset(map(str.lower, chain.from_iterable(texts))),
            infra_ids=frozenset(filter(None, infra_ids)),
            assignments=frozenset(
                (str(role["scope"]), str(role["roleAssignmentName"]))
                for type_, _, role in by_type
                if type_ == resource_types.ROLE_ASSIGNMENT and {"scope", "roleAssignmentName"} <= role.keys()
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
        engines = (
            engine if name == engine.stack else replace(engine, stack=name, beside=engine.stack) for name in names
        )
        with ThreadPoolExecutor(_MAX_ENGINES) as pool:
            states = list(pool.map(attempt, (each.state for each in engines)))
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


def refuse_moves(engine: Engine) -> None:
    """Raise CommandError if the next `up` would delete a cluster that another stack is to have, or the reverse, and as
    `refuse_half_moves` does.

    The other stack shares this one's vault, or has the vault that this one shares, and has its file beside this
    stack's. The state, not the outputs, decides which stack has a cluster: a move changes the state.
    """
    backend = _Backend(engine)
    backend.refuse_half_moves()
    backend.refuse_unread_files()
    stack, files, own = engine.stack, backend.files, backend.files.get(engine.stack, {})
    moves = {
        cluster: other
        for other, written in files.items()
        if shared_stack_of(written) == stack
        for cluster in sorted(_names(written) - _names(own))
    }
    if moves and (leaving := moves.keys() & backend.clusters(stack)):
        raise _refusal(engine, {cluster: (stack, moves[cluster]) for cluster in leaving})
    shared = shared_stack_of(own)
    if shared is None or not (new := _names(own) - backend.clusters(stack)):
        return
    # The program itself reports a missing shared stack.
    if coming := new & backend.clusters(shared):
        raise _refusal(engine, dict.fromkeys(coming, (shared, stack)))


def clusters_in(resources: Iterable[StateResource]) -> dict[str, str]:
    """The hosted clusters in a state: URN of the component by name."""
    return {
        name_of(resource["urn"]): resource["urn"]
        for resource in resources
        if resource["type"] == resource_types.HOSTED_CLUSTER
    }


def refuse_half_moves(engine: Engine) -> None:
    """Raise CommandError if another stack's state has a cluster of this one's as well, as after an interrupted move.

    A renewal or a deletion by one of the stacks would be unknown to the other.
    """
    _Backend(engine).refuse_half_moves()


@dataclass(frozen=True)
class _Backend:
    """The stacks of a backend by their files and states; each state is read once, on demand."""

    engine: Engine
    _known: dict[str, Set[str]] = field(default_factory=dict)

    @cached_property
    def _written(self) -> dict[str, Mapping[str, Any] | None]:
        root = self.engine.root
        return {stack: written_for(stack, file_of(stack, root).parent) for stack in stack_names(root)}

    @property
    def files(self) -> dict[str, Mapping[str, Any]]:
        """The values in each stack's file, empty for a broken one: the engine reports this stack's."""
        return {stack: written or {} for stack, written in self._written.items()}

    def refuse_unread_files(self) -> None:
        """Raise CommandError if a file that cannot be read may have a cluster that this stack's no longer has."""
        stack = self.engine.stack
        unread = [f"Pulumi.{other}.yaml" for other, written in self._written.items() if written is None]
        if not unread or self._written.get(stack) is None:
            return
        if leaving := self.clusters(stack) - _names(self.files[stack]):
            raise CommandError(
                f"nothing was changed in {stack}: {', '.join(unread)} cannot be read, and may have "
                f"{', '.join(sorted(leaving))}, which Pulumi.{stack}.yaml no longer has. Correct it, or take it away"
            )

    def clusters(self, stack: str) -> Set[str]:
        """The hosted clusters in the state of a stack; none if another stack does not exist."""
        if stack not in self._known:
            engine = self.engine
            read = engine.resources() if stack == self.engine.stack else replace(engine, stack=stack).resources_if_any()
            self._known[stack] = clusters_in(read).keys()
        return self._known[stack]

    def refuse_half_moves(self) -> None:
        """Raise CommandError for a cluster in two states."""
        own = self.files.get(self.engine.stack, {})
        pairs = [
            (self.engine.stack, other)
            for other, written in self.files.items()
            if shared_stack_of(written) == self.engine.stack
        ]
        if shared := shared_stack_of(own):
            pairs.append((shared, self.engine.stack))
        half: dict[str, tuple[str, str]] = {}
        for source, target in pairs:
            # The clusters that both files name, or that only the state of this stack has.
            doubtful = self.clusters(self.engine.stack) - (_names(own) - _names(self.files[target]))
            if doubtful:
                half |= dict.fromkeys(doubtful & self.clusters(source) & self.clusters(target), (source, target))
        if half:
            lines = (
                f"  {cluster} is in the states of both {source} and {target}: its move was interrupted, or one of the "
                f"states was restored. docs/guides/stacks.md says how the move is finished"
                for cluster, (source, target) in sorted(half.items())
            )
            raise CommandError(f"nothing was changed in {self.engine.stack}:", *lines)


def _refusal(engine: Engine, moves: Mapping[str, tuple[str, str]]) -> CommandError:
    lines = (
        f"  {cluster} is in the state of {source}, and in Pulumi.{target}.yaml: in one change {source} would delete "
        f"its applications and refuse its pods. Take it out of Pulumi.{source}.yaml, and move it first, as "
        f"docs/guides/stacks.md says. Or, if it is not used any more, leave it out of both files until an `up` of "
        f"{source} has deleted it"
        for cluster, (source, target) in sorted(moves.items())
    )
    return CommandError(f"nothing was changed in {engine.stack}:", *lines)


def _names(written: Mapping[str, Any]) -> set[str]:
    return {cluster["name"] for cluster in named_clusters(written.get("hostedClusters"))}


def refuse_duplicates(engine: Engine, resources: Iterable[StateResource], report: Callable[[str], None]) -> None:
    """Raise CommandError if the next `up` would create a hosted cluster with the infraID of another stack's.

    Args:
        resources: those in the stack's state.
        report: prints a line for the user.
    """
    clusters = outputs_in(resources).get("hostedClusters", {})
    known = {name: cluster["hostedClusterSpec"]["infraID"] for name, cluster in clusters.items()}
    # Without those that the program will refuse.
    written = named_clusters(engine.written().get("hostedClusters"))
    configured = {cluster["name"]: str(cluster.get("infraID") or dashed(cluster["name"])) for cluster in written}
    new = {name: infra_id for name, infra_id in configured.items() if known.get(name) != infra_id}
    if not new:
        return
    stacks = Stacks.read(engine)
    taken = [
        f'  {cluster}: infraID is "{infra_id}", which a hosted cluster of the stack {other} has; accepted: an id of '
        f"its own. Set another infraID in Pulumi.{engine.stack}.yaml, or take {cluster} out of it"
        for cluster, infra_id in new.items()
        for other, contents in stacks.others(engine.stack).items()
        if contents.has_infra_id(infra_id)
    ]
    if taken:
        raise CommandError(f"nothing was changed in {engine.stack}:", *taken)
    if unread := sorted(stacks.unread.keys() - stacks.contents.keys() - {engine.stack}):
        report(f"not compared with the infraIDs of {', '.join(unread)}, whose states cannot be read")
