"""What a rehearsal found, as data: the plan by identity, the sign-ins, and what speaks against the change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ops.rehearsal.moves import ClusterMove
from ops.rehearsal.sign_ins import SignIns
from ops.rehearsal.steps import Operation, ResourceKind, ResourceStep
from ops.world.ownership import ResourceOwner

# How many resources of one kind have each fate.
Cell: TypeAlias = Mapping[Operation, int]
_LOST: Final = (Operation.REPLACE, Operation.DELETE)


@dataclass(frozen=True)
class StackStep:
    """A step with the stack that it is in, by the stack's own name."""

    stack: str
    step: ResourceStep


@dataclass(frozen=True)
class CredentialLoss:
    """What a hosted cluster would lose; `is_approved` by `allowCredentialLoss`."""

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
    """Everything that a rehearsal found; names are the stack's own, times are seconds.

    `errors` ended the run at the head commit. `moves` were made before it, by `idstack split`. `unused` are clusters
    that the head has not, or whose loss is approved: nobody may use their credentials any more, so their clients'
    failures are told but speak against nothing. `second` are the steps of another run of the head, and `left` is what
    its destruction left; both None if it did not come to that. `kept` is what Azure keeps of deleted things. `left_out`
    is what a rehearsal cannot show of this configuration.
    """

    stack: str
    base: str
    head: str
    seed: int
    stacks: tuple[str, ...]
    steps: tuple[StackStep, ...] = ()
    errors: tuple[str, ...] = ()
    losses: tuple[CredentialLoss, ...] = ()
    moves: tuple[ClusterMove, ...] = ()
    sign_ins: tuple[SignIns, ...] = ()
    new_pods: tuple[SignIns, ...] = ()
    unused: tuple[str, ...] = ()
    restarts: tuple[Restart, ...] = ()
    second: tuple[StackStep, ...] | None = None
    left: tuple[str, ...] | None = None
    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    def plan(self) -> dict[ResourceOwner, dict[ResourceKind, Cell]]:
        """Resources per operation, by identity and kind; what all clusters share comes first."""
        found: dict[ResourceOwner, dict[ResourceKind, Counter[Operation]]] = {}
        for each in self.steps:
            row = found.setdefault(each.step.owner, {})
            row.setdefault(each.step.kind, Counter())[each.step.operation] += 1
        return {owner: dict(found[owner]) for owner in sorted(found)}

    def lost(self) -> list[StackStep]:
        """The steps that replace or delete, those of roles and mounts among them."""
        return [each for each in self.steps if each.step.operation in _LOST]

    @property
    def failed_sign_ins(self) -> int:
        """Sign-ins that failed, of the clients that ran meanwhile and of pods that would start now."""
        running = (each for each in self.sign_ins if each.owner.cluster not in self.unused)
        return sum(each.failed.total() for each in (*running, *self.new_pods))

    @property
    def worked_sign_ins(self) -> int:
        """Sign-ins that worked."""
        return sum(each.worked for each in (*self.sign_ins, *self.new_pods))

    def findings(self, forbidden: Collection[Operation] = ()) -> list[str]:
        """What speaks against the change, a sentence each; empty is a success."""
        return list(self._findings(forbidden))

    def _findings(self, forbidden: Collection[Operation]) -> Iterator[str]:
        for loss in self.losses:
            if not loss.is_approved:
                yield f"{loss.cluster} would lose credentials in use, which allowCredentialLoss does not approve"
        if protected := [each.step.name for each in self.lost() if each.step.is_protected]:
            yield f"a protected resource would be deleted: {', '.join(protected)}"
        if self.errors:
            yield "the run at the head commit failed"
        if self.failed_sign_ins:
            yield f"{self.failed_sign_ins} sign-ins failed"
        for operation in sorted(set(forbidden)):
            if names := [each.step.name for each in self.steps if each.step.operation == operation]:
                yield f"{operation} is forbidden (--forbid), and the plan has {len(names)}: {_some(names)}"
        if self.second:
            yield f"a second run would change again: {_some([each.step.name for each in self.second])}"
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
                    "cluster": owner.cluster,
                    "identity": owner.identity,
                    **{kind.value: {operation.value: count for operation, count in row[kind].items()} for kind in row},
                }
                for owner, row in self.plan().items()
            ],
            "lost": [_lost_to_json(each) for each in self.lost()],
            "errors": list(self.errors),
            "credentialLosses": [
                {"cluster": each.cluster, "lost": list(each.lines), "approved": each.is_approved}
                for each in self.losses
            ],
            "moves": [
                {"cluster": each.cluster, "from": each.source, "to": each.target, "command": each.command}
                for each in self.moves
            ],
            "signIns": [_sign_ins_to_json(each) for each in self.sign_ins],
            "newPods": [_sign_ins_to_json(each) for each in self.new_pods],
            "clustersNobodyUses": list(self.unused),
            "restarts": [
                {
                    "cluster": each.owner.cluster,
                    "identity": each.owner.identity,
                    "deployments": list(each.deployments),
                    "reason": each.reason,
                }
                for each in self.restarts
            ],
            "secondUp": None if self.second is None else [each.step.name for each in self.second],
            "leftByDown": None if self.left is None else list(self.left),
            "keptByAzure": list(self.kept),
            "leftOut": list(self.left_out),
            "seconds": {name: round(value, 1) for name, value in self.seconds.items()},
        }


def why(step: ResourceStep) -> str:
    """Why a resource is replaced or deleted."""
    if step.operation is Operation.DELETE:
        return "the configuration or the program has it no more"
    return ", ".join(step.properties) or "the provider names no property"


def _lost_to_json(each: StackStep) -> dict[str, Any]:
    return {
        "stack": each.stack,
        "resource": each.step.name,
        "type": each.step.type,
        "operation": each.step.operation.value,
        "because": why(each.step),
        "protected": each.step.is_protected,
    }


def _sign_ins_to_json(each: SignIns) -> dict[str, Any]:
    owner = each.owner
    return {"cluster": owner.cluster, "identity": owner.identity, "worked": each.worked, "failed": dict(each.failed)}


_SHOWN: Final = 5


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
