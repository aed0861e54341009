"""The result of a rehearsal: as data, as tables on a screen, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from ops.outputs import plan
from ops.outputs.tables import counted, titled
from ops.rehearsal.configuration import StackCopy
from ops.rehearsal.sign_ins import SignIns
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
    before_clusters, clusters = (
        {copy.stack: {cluster.name for cluster in copy.settings.hosted_clusters} for copy in copies}
        for copies in (before, after)
    )
    for copy in after:
        for source in before:
            if source.stack in clusters and copy.shared_stack == source.name:
                removed = before_clusters[source.stack] - clusters[source.stack]
                new = clusters[copy.stack] - before_clusters.get(copy.stack, set())
                yield from (ClusterMove(cluster, source.stack, copy.stack) for cluster in sorted(removed & new))


@dataclass(frozen=True)
class CredentialLoss:
    """The credentials that a hosted cluster would lose; `approved` by `allowCredentialLoss`."""

    cluster: str
    lost: tuple[str, ...]
    approved: bool


@dataclass(frozen=True)
class Restart:
    """Deployments whose pods must start again, and why."""

    owner: ResourceOwner
    deployments: tuple[str, ...]
    reason: str


@dataclass
class Rehearsal:
    """The result of a rehearsal, filled step by step; names are the stack's own, times are seconds.

    Each step of a `forbidden` operation is a finding. `errors` ended the run at the head commit. `moves` were made
    before it, by `pulumi state move`. `unused` are clusters that the head does not have, or whose loss is approved:
    failed sign-ins of their clients are reported, but are no finding. `second` are the steps of a second run of the
    head, `left` is what remained after `down`; both None if the rehearsal ended before. `kept` are deleted resources
    that Azure keeps. `left_out` names what a rehearsal cannot show of this configuration.
    """

    stack: str
    base: str
    head: str
    seed: int
    stacks: Sequence[str]
    forbidden: Collection[plan.Operation] = ()
    steps: list[plan.ResourceStep] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    losses: list[CredentialLoss] = field(default_factory=list)
    moves: Sequence[ClusterMove] = ()
    sign_ins: Sequence[SignIns] = ()
    new_pods: Sequence[SignIns] = ()
    unused: Sequence[str] = ()
    restarts: Sequence[Restart] = ()
    second: Sequence[plan.ResourceStep] | None = None
    left: Sequence[str] | None = None
    kept: Sequence[str] = ()
    left_out: Sequence[str] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def failed_sign_ins(self) -> int:
        """The number of failed sign-ins, of the clients during the run and of new pods after it."""
        running = (sign_in for sign_in in self.sign_ins if sign_in.owner.cluster not in self.unused)
        return sum(client.failed.total() for client in (*running, *self.new_pods))

    @property
    def findings(self) -> list[str]:
        """The objections to the change, a sentence each; empty is a success."""
        return list(self._findings())

    def _findings(self) -> Iterator[str]:
        for loss in self.losses:
            if not loss.approved:
                yield f"{loss.cluster} would lose credentials in use, which allowCredentialLoss does not approve"
        if protected := [step.name for step in plan.lost(self.steps) if step.is_protected]:
            yield f"a protected resource would be deleted: {', '.join(protected)}"
        if self.errors:
            yield "the run at the head commit failed"
        if self.failed_sign_ins:
            yield f"{self.failed_sign_ins} sign-ins failed"
        for operation in sorted(set(self.forbidden)):
            if names := [step.name for step in self.steps if step.operation == operation]:
                yield f"{operation} is forbidden (--forbid), and the plan has {len(names)}: {_some(names)}"
        if self.second:
            yield f"a second run would change again: {_some([step.name for step in self.second])}"
        if self.left:
            yield f"the destroyed stack leaves behind: {_some(self.left)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "stack": self.stack,
            "base": self.base,
            "head": self.head,
            "seed": self.seed,
            "stacks": list(self.stacks),
            "findings": self.findings,
            "plan": [
                {
                    **vars(owner),
                    **{kind.value: {operation.value: count for operation, count in row[kind].items()} for kind in row},
                }
                for owner, row in plan.counts_by_owner(self.steps).items()
            ],
            "replacedOrDeleted": [
                {
                    "stack": step.stack,
                    "resource": step.name,
                    "type": step.type,
                    "operation": step.operation.value,
                    "reason": plan.why(step),
                    "protected": step.is_protected,
                }
                for step in plan.lost(self.steps)
            ],
            "errors": list(self.errors),
            "credentialLosses": [dict(vars(loss)) for loss in self.losses],
            "moves": [{"cluster": move.cluster, "from": move.source, "to": move.target} for move in self.moves],
            "signIns": [_sign_ins_to_json(sign_in) for sign_in in self.sign_ins],
            "newPods": [_sign_ins_to_json(new_pod) for new_pod in self.new_pods],
            "unusedClusters": list(self.unused),
            "restarts": [
                {**vars(restart.owner), "deployments": list(restart.deployments), "reason": restart.reason}
                for restart in self.restarts
            ],
            "secondUp": None if self.second is None else [step.name for step in self.second],
            "remainingAfterDown": None if self.left is None else list(self.left),
            "keptByAzure": list(self.kept),
            "notRehearsed": list(self.left_out),
            "seconds": {name: round(value, 1) for name, value in self.seconds.items()},
        }


def _sign_ins_to_json(client: SignIns) -> dict[str, Any]:
    return {**vars(client.owner), "succeeded": client.worked, "failed": dict(client.failed)}


_SHOWN: Final = 5


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def verdict(rehearsal: Rehearsal) -> str:
    found = counted(len(rehearsal.findings), "finding") if rehearsal.findings else "no findings"
    return f"rehearsal of {rehearsal.stack}, {rehearsal.base} to {rehearsal.head}: {found}"


def screen(rehearsal: Rehearsal) -> RenderableType:
    parts: list[RenderableType] = [titled(*section) for section in _sections(rehearsal)]
    parts.append(Text(""))
    parts += [Text(line) for line in _facts(rehearsal)]
    parts += [Text(f"error: {error}", "red") for error in rehearsal.errors]
    parts.append(Text(f"\n{verdict(rehearsal)}", "bold red" if rehearsal.findings else "bold green"))
    parts += [Text(f"  {finding}", "red") for finding in rehearsal.findings]
    return Group(*parts)


def markdown(rehearsal: Rehearsal) -> str:
    """The report for a pull request; names and messages in it are escaped."""
    lines = [f"**{plan.escaped(verdict(rehearsal))}**", ""]
    lines += [f"- {plan.escaped(finding)}" for finding in rehearsal.findings]
    for title, rows, note in _sections(rehearsal):
        lines += ["", f"**{title}**{f' ({note})' if note else ''}", ""]
        lines += plan.markdown_table(rows) if rows else ["none"]
    lines += ["", *(f"- {plan.escaped(fact)}" for fact in _facts(rehearsal))]
    for error in rehearsal.errors:
        lines += ["", *(f"    {line}" for line in error.splitlines())]
    return "\n".join(lines) + "\n"


def _sections(rehearsal: Rehearsal) -> Iterator[tuple[str, plan.Lines, str]]:
    """Titles, lines and notes, without empty sections other than the plan and the sign-ins."""
    yield from plan.sections(rehearsal.steps)
    if rehearsal.losses:
        lines = [
            {"cluster": loss.cluster, "lost": "; ".join(loss.lost), "approved": "yes" if loss.approved else "no"}
            for loss in rehearsal.losses
        ]
        yield "credentials in use that would be lost", lines, ""
    failed = [*_failed(rehearsal.sign_ins, "during the run"), *_failed(rehearsal.new_pods, "in new pods after it")]
    worked = sum(client.worked for client in (*rehearsal.sign_ins, *rehearsal.new_pods))
    clients = counted(len(rehearsal.sign_ins), "client")
    yield "failed sign-ins", failed, f"{rehearsal.failed_sign_ins} failed, {worked} worked, {clients}"
    if rehearsal.restarts:
        lines = [
            {**plan.owner_cells(restart.owner), "Deployment": ", ".join(restart.deployments), "reason": restart.reason}
            for restart in rehearsal.restarts
        ]
        yield "pods that restart", lines, ""


def _failed(sign_ins: Iterable[SignIns], when: str) -> plan.Lines:
    return [
        {
            **plan.owner_cells(sign_in.owner),
            "failed": str(count),
            "of": str(sign_in.worked + sign_in.failed.total()),
            "when": when,
            "reason": cause,
        }
        for sign_in in sign_ins
        for cause, count in sign_in.failed.most_common()
    ]


def _facts(rehearsal: Rehearsal) -> Iterator[str]:
    if len(rehearsal.stacks) > 1:
        yield f"stacks: {', '.join(rehearsal.stacks)}"
    for move in rehearsal.moves:
        yield (
            f"{move.cluster} moves from {move.source} to {move.target}: move its state first (docs/guides/stacks.md), "
            "as this rehearsal did; up refuses the change without it"
        )
    if rehearsal.unused:
        yield f"not used any more, so that failed sign-ins of their clients do not count: {', '.join(rehearsal.unused)}"
    if rehearsal.second is not None:
        yield "a second run changes nothing" if not rehearsal.second else "a second run changes resources again"
    if rehearsal.left is not None:
        yield "down leaves nothing" if not rehearsal.left else f"down leaves: {', '.join(rehearsal.left)}"
    if rehearsal.kept:
        yield f"recoverable for a while: {', '.join(rehearsal.kept)}"
    for text in rehearsal.left_out:
        yield f"not rehearsed: {text}"
    times = ", ".join(f"{name} {value:.0f} s" for name, value in rehearsal.seconds.items())
    yield f"time: {times}; --seed {rehearsal.seed} repeats it"
