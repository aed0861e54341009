"""The report as tables on a screen, and as Markdown for a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from ops.outputs.tables import fitted
from ops.rehearsal.report import Cell, Rehearsal, why
from ops.rehearsal.sign_ins import SignIns
from ops.rehearsal.steps import Operation, ResourceKind
from ops.world.ownership import ResourceOwner

_SIGNS: Final = {Operation.CREATE: "+", Operation.UPDATE: "~", Operation.REPLACE: "+-", Operation.DELETE: "-"}
_LEGEND: Final = "+ created, ~ updated, +- replaced, - deleted"
_PLAN: Final = "plan"
_SHARED: Final = "(the stack's own)"
_OF_CLUSTER: Final = "(the cluster's own)"
# The maximum of rows in a comment; --json has all of them.
_MAX_ROWS: Final = 40
# Characters that Markdown or GitHub interpret, as HTML entities.
_MARKS: Final = str.maketrans({mark: f"&#{ord(mark)};" for mark in "&\\`*_[]<>|~#!@"})
# A table for both outputs: headings and lines of plain text.
_Lines = list[dict[str, str]]


def cell(operations: Cell | None) -> str:
    """`+2 ~1`: resources per operation; empty for none."""
    counts = operations or {}
    return " ".join(f"{sign}{counts[operation]}" for operation, sign in _SIGNS.items() if counts.get(operation))


def verdict(rehearsal: Rehearsal, forbidden: Collection[Operation]) -> str:
    """The first line of the report."""
    findings = rehearsal.findings(forbidden)
    subject = f"rehearsal of {rehearsal.stack}, {rehearsal.base} to {rehearsal.head}"
    return f"{subject}: {'no findings' if not findings else f'{len(findings)} findings'}"


def screen(rehearsal: Rehearsal, forbidden: Collection[Operation], width: int) -> RenderableType:
    """The report as text for a console of so many columns."""
    parts: list[RenderableType] = []
    for title, lines, note in _sections(rehearsal):
        parts.append(Text(f"\n{title}{f' ({note})' if note else ''}", "bold"))
        parts.append(fitted([_styled(line) for line in lines], width) if lines else Text("none"))
    parts.append(Text(""))
    parts += [Text(line) for line in _facts(rehearsal)]
    parts += [Text(f"error: {error}", "red") for error in rehearsal.errors]
    findings = rehearsal.findings(forbidden)
    parts.append(Text(f"\n{verdict(rehearsal, forbidden)}", "bold red" if findings else "bold green"))
    parts += [Text(f"  {finding}", "red") for finding in findings]
    return Group(*parts)


def markdown(rehearsal: Rehearsal, forbidden: Collection[Operation]) -> str:
    """The report for a pull request; names and messages in it are escaped."""
    findings = rehearsal.findings(forbidden)
    lines = [f"**{_escaped(verdict(rehearsal, forbidden))}**", "", *(f"- {_escaped(finding)}" for finding in findings)]
    for title, rows, note in _sections(rehearsal):
        lines += ["", f"**{title}**{f' ({note})' if note else ''}", ""]
        lines += _table(rows) if rows else ["none"]
    lines += ["", *(f"- {_escaped(fact)}" for fact in _facts(rehearsal))]
    for error in rehearsal.errors:
        lines += ["", *(f"    {line}" for line in error.splitlines())]
    return "\n".join(lines) + "\n"


def plan_markdown(rehearsal: Rehearsal) -> str:
    """The plan alone: how many resources change, a table by identity, and what is replaced or deleted."""
    counts = Counter(step.operation for step in rehearsal.steps)
    summary = f"{cell(counts)} ({_LEGEND})" if counts else "failed" if rehearsal.errors else "no changes"
    lines = [f"**{_escaped(summary)}**", ""]
    for title, rows, _ in _sections_of_plan(rehearsal):
        lines += [] if title == _PLAN else [f"**{title}**", ""]
        lines += [*_table(rows), ""] if rows else []
    for error in rehearsal.errors:
        lines += [*(f"    {line}" for line in error.splitlines()), ""]
    return "\n".join(lines)


def _sections(rehearsal: Rehearsal) -> Iterator[tuple[str, _Lines, str]]:
    """Titles, lines and notes, without empty sections other than the plan and the sign-ins."""
    yield from _sections_of_plan(rehearsal)
    if rehearsal.losses:
        lines = [
            {"cluster": loss.cluster, "lost": "; ".join(loss.lines), "approved": "yes" if loss.is_approved else "no"}
            for loss in rehearsal.losses
        ]
        yield "credentials in use that would be lost", lines, ""
    failed = [*_failed(rehearsal.sign_ins, "during the run"), *_failed(rehearsal.new_pods, "in new pods after it")]
    worked, refused = rehearsal.worked_sign_ins, rehearsal.failed_sign_ins
    yield "failed sign-ins", failed, f"{refused} failed, {worked} worked, {len(rehearsal.sign_ins)} clients"
    if rehearsal.restarts:
        lines = [
            {**_owner(restart.owner), "Deployment": ", ".join(restart.deployments), "reason": restart.reason}
            for restart in rehearsal.restarts
        ]
        yield "pods that restart", lines, ""


def _sections_of_plan(rehearsal: Rehearsal) -> Iterator[tuple[str, _Lines, str]]:
    yield _PLAN, list(_plan(rehearsal)), _LEGEND
    if lost := rehearsal.lost():
        lines = [
            {
                "resource": step.name,
                "operation": step.operation.value,
                "reason": why(step),
                "protected": "yes" if step.is_protected else "",
            }
            for step in lost
        ]
        yield "replaced or deleted", lines, ""


def _plan(rehearsal: Rehearsal) -> Iterator[dict[str, str]]:
    for owner, row in rehearsal.plan().items():
        yield {**_owner(owner), **{kind.value: cell(row.get(kind)) for kind in ResourceKind}}


def _owner(owner: ResourceOwner) -> dict[str, str]:
    return {"cluster": owner.cluster, "identity": owner.identity or (_OF_CLUSTER if owner.cluster else _SHARED)}


def _failed(sign_ins: Iterable[SignIns], when: str) -> _Lines:
    return [
        {
            **_owner(sign_in.owner),
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


def _styled(line: Mapping[str, str]) -> dict[str, Text]:
    return {name: Text(value) for name, value in line.items()}


def _table(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    names = list(rows[0])
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows[:_MAX_ROWS]:
        yield f"| {' | '.join(_escaped(row[name]) for name in names)} |"
    if len(rows) > _MAX_ROWS:
        yield from ("", f"... and {len(rows) - _MAX_ROWS} more")


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: anybody may propose a configuration with such names."""
    return " ".join(text.split()).translate(_MARKS)
