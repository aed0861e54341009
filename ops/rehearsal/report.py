"""The result of a rehearsal, as data: the plan by identity, the sign-ins, and the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ops.rehearsal.configuration import StackCopy
from ops.rehearsal.sign_ins import SignIns
from ops.rehearsal.steps import Operation, ResourceKind, ResourceStep
from ops.world.ownership import ResourceOwner


@dataclass(frozen=True)
class ClusterMove:
    """A cluster that moves from the stack `source` to `target`, which shares its vault; the stacks' own names."""

    cluster: str
    source: str
    target: str


def moves(before: Sequence[StackCopy], after: Sequence[StackCopy]) -> Iterator[ClusterMove]:
    """The moves that `idstack up` refuses before the state has moved, by the stacks `before` and `after` the change.

    A cluster of a stack with another vault does not move: it gets new credentials there, and that is rehearsed.
    """
    before_clusters, clusters = ({copy.stack: _clusters(copy) for copy in copies} for copies in (before, after))
    for copy in after:
        for source in before:
            if source.stack in clusters and copy.shared_stack == source.name:
                removed = before_clusters[source.stack] - clusters[source.stack]
                new = clusters[copy.stack] - before_clusters.get(copy.stack, set())
                yield from (ClusterMove(cluster, source.stack, copy.stack) for cluster in sorted(removed & new))


def _clusters(copy: StackCopy) -> set[str]:
    return {hosted_cluster.name for hosted_cluster in copy.settings.hosted_clusters}


# The number of resources of one kind by operation.
Cell: TypeAlias = Mapping[Operation, int]
_LOST: Final = (Operation.REPLACE, Operation.DELETE)


@dataclass(frozen=True)
class CredentialLoss:
    """The credentials that a hosted cluster would lose; `is_approved` by `allowCredentialLoss`."""

    cluster: str
    lines: tuple[str, ...]
    is_approved: bool


@dataclass(frozen=True)
class Restart:
    """Deployments whose pods must start again, and why."""

    owner: ResourceOwner
    deployments: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Rehearsal:
    """The result of a rehearsal; names are the stack's own, times are seconds.

    `errors` ended the run at the head commit. `moves` were made before it, by `pulumi state move`. `unused` are
    clusters that the head does not have, or whose loss is approved: failed sign-ins of their clients are reported, but
    are no finding. `second` are the steps of a second run of the head, `left` is what remained after `down`; both None
    if the rehearsal ended before. `kept` are deleted resources that Azure keeps. `left_out` names what a rehearsal
    cannot show of this configuration.
    """

    stack: str
    base: str
    head: str
    seed: int
    stacks: tuple[str, ...]
    steps: tuple[ResourceStep, ...] = ()
    errors: tuple[str, ...] = ()
    losses: tuple[CredentialLoss, ...] = ()
    moves: tuple[ClusterMove, ...] = ()
    sign_ins: tuple[SignIns, ...] = ()
    new_pods: tuple[SignIns, ...] = ()
    unused: tuple[str, ...] = ()
    restarts: tuple[Restart, ...] = ()
    second: tuple[ResourceStep, ...] | None = None
    left: tuple[str, ...] | None = None
    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    def plan(self) -> dict[ResourceOwner, dict[ResourceKind, Cell]]:
        """Resources per operation, by identity and kind; those that all clusters share come first."""
        rows: dict[ResourceOwner, dict[ResourceKind, Counter[Operation]]] = {}
        for step in self.steps:
            row = rows.setdefault(step.owner, {})
            row.setdefault(step.kind, Counter())[step.operation] += 1
        return {owner: dict(rows[owner]) for owner in sorted(rows)}

    def lost(self) -> list[ResourceStep]:
        """The steps that replace or delete, also those of roles and mounts."""
        return [step for step in self.steps if step.operation in _LOST]

    @property
    def failed_sign_ins(self) -> int:
        """The number of failed sign-ins, of the clients during the run and of new pods after it."""
        running = (sign_in for sign_in in self.sign_ins if sign_in.owner.cluster not in self.unused)
        return sum(client.failed.total() for client in (*running, *self.new_pods))

    @property
    def worked_sign_ins(self) -> int:
        """The number of successful sign-ins."""
        return sum(client.worked for client in (*self.sign_ins, *self.new_pods))

    def findings(self, forbidden: Collection[Operation] = ()) -> list[str]:
        """The objections to the change, a sentence each; empty is a success."""
        return list(self._findings(forbidden))

    def _findings(self, forbidden: Collection[Operation]) -> Iterator[str]:
        for loss in self.losses:
            if not loss.is_approved:
                yield f"{loss.cluster} would lose credentials in use, which allowCredentialLoss does not approve"
        if protected := [step.name for step in self.lost() if step.is_protected]:
            yield f"a protected resource would be deleted: {', '.join(protected)}"
        if self.errors:
            yield "the run at the head commit failed"
        if self.failed_sign_ins:
            yield f"{self.failed_sign_ins} sign-ins failed"
        for operation in sorted(set(forbidden)):
            if names := [step.name for step in self.steps if step.operation == operation]:
                yield f"{operation} is forbidden (--forbid), and the plan has {len(names)}: {_some(names)}"
        if self.second:
            yield f"a second run would change again: {_some([step.name for step in self.second])}"
        if self.left:
            yield f"the destroyed stack leaves behind: {_some(self.left)}"

    def to_json(self, forbidden: Collection[Operation] = ()) -> dict[str, Any]:
        """The document of `--json`."""
        return {
            "stack": self.stack,
            "base": self.base,
            "head": self.head,
            "seed": self.seed,
            "stacks": list(self.stacks),
            "findings": self.findings(forbidden),
            "plan": [
                {
                    **vars(owner),
                    **{kind.value: {operation.value: count for operation, count in row[kind].items()} for kind in row},
                }
                for owner, row in self.plan().items()
            ],
            "replacedOrDeleted": [_lost_to_json(step) for step in self.lost()],
            "errors": list(self.errors),
            "credentialLosses": [
                {"cluster": loss.cluster, "lost": list(loss.lines), "approved": loss.is_approved}
                for loss in self.losses
            ],
            "moves": [{"cluster": move.cluster, "from": move.source, "to": move.target} for move in self.moves],
            "signIns": [_sign_ins_to_json(sign_in) for sign_in in self.sign_ins],
            "newPods": [_sign_ins_to_json(new_pod) for new_pod in self.new_pods],
            "unusedClusters": list(self.unused),
            "restarts": [
                {
                    **vars(restart.owner),
                    "deployments": list(restart.deployments),
                    "reason": restart.reason,
                }
                for restart in self.restarts
            ],
            "secondUp": None if self.second is None else [step.name for step in self.second],
            "remainingAfterDown": None if self.left is None else list(self.left),
            "keptByAzure": list(self.kept),
            "notRehearsed": list(self.left_out),
            "seconds": {name: round(value, 1) for name, value in self.seconds.items()},
        }


def why(step: ResourceStep) -> str:
    """Why a resource is replaced or deleted."""
    if step.operation is Operation.DELETE:
        return "no longer in the configuration or the program"
    return ", ".join(step.properties) or "the provider names no property"


def _lost_to_json(step: ResourceStep) -> dict[str, Any]:
    return {
        "stack": step.stack,
        "resource": step.name,
        "type": step.type,
        "operation": step.operation.value,
        "reason": why(step),
        "protected": step.is_protected,
    }


def _sign_ins_to_json(client: SignIns) -> dict[str, Any]:
    return {**vars(client.owner), "succeeded": client.worked, "failed": dict(client.failed)}


_SHOWN: Final = 5


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
