"""The report for people: tables on a screen, and Markdown for a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
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
# Of the details in a comment: whoever wants all of them runs it with --json.
_MOST: Final = 40

# What Markdown or GitHub could take for a mark of theirs, as HTML writes it.
_MARKS: Final = str.maketrans({mark: f"&#{ord(mark)};" for mark in "&\\`*_[]<>|~#!@"})

# A table as both outputs take it: headings and lines of plain text.
_Lines = list[dict[str, str]]


def cell(found: Cell | None) -> str:
    """`+2 ~1`: resources per operation; empty for none."""
    known = found or {}
    return " ".join(f"{sign}{known[operation]}" for operation, sign in _SIGNS.items() if known.get(operation))


def verdict(rehearsal: Rehearsal, forbidden: Collection[Operation]) -> str:
    """The first line: what it comes to."""
    found = rehearsal.findings(forbidden)
    what = f"rehearsal of {rehearsal.stack}, {rehearsal.base} to {rehearsal.head}"
    return f"{what}: {'no findings' if not found else f'{len(found)} findings'}"


def screen(rehearsal: Rehearsal, forbidden: Collection[Operation], width: int) -> RenderableType:
    """The report as text for a console of so many columns."""
    parts: list[RenderableType] = []
    for title, lines, note in _sections(rehearsal):
        parts.append(Text(f"\n{title}{f' ({note})' if note else ''}", "bold"))
        parts.append(fitted([_styled(line) for line in lines], [[list(lines[0])]], width) if lines else Text("none"))
    parts.append(Text(""))
    parts += [Text(line) for line in _facts(rehearsal)]
    parts += [Text(f"error: {each}", "red") for each in rehearsal.errors]
    found = rehearsal.findings(forbidden)
    parts.append(Text(f"\n{verdict(rehearsal, forbidden)}", "bold red" if found else "bold green"))
    parts += [Text(f"  {each}", "red") for each in found]
    return Group(*parts)


def show(rehearsal: Rehearsal, forbidden: Collection[Operation], console: Console) -> None:
    """Print the report."""
    console.print(screen(rehearsal, forbidden, console.width))


def markdown(rehearsal: Rehearsal, forbidden: Collection[Operation]) -> str:
    """The report for a pull request; nothing in it is taken for Markdown but its own tables."""
    found = rehearsal.findings(forbidden)
    lines = [f"**{_escaped(verdict(rehearsal, forbidden))}**", "", *(f"- {_escaped(each)}" for each in found)]
    for title, rows, note in _sections(rehearsal):
        lines += ["", f"**{title}**{f' ({note})' if note else ''}", ""]
        lines += _table(rows[:_MOST]) if rows else ["none"]
        if len(rows) > _MOST:
            lines += ["", f"... and {len(rows) - _MOST} more"]
    lines += ["", *(f"- {_escaped(each)}" for each in _facts(rehearsal))]
    for each in rehearsal.errors:
        lines += ["", *(f"    {line}" for line in each.splitlines())]
    return "\n".join(lines) + "\n"


def plan_markdown(rehearsal: Rehearsal) -> str:
    """The plan alone: how many resources change, a table by identity, and what is replaced or deleted."""
    known = Counter(each.step.operation for each in rehearsal.steps)
    what = f"{cell(known)} ({_LEGEND})" if known else "failed" if rehearsal.errors else "no changes"
    lines = [f"**{_escaped(what)}**", ""]
    for title, rows, _ in _sections_of_plan(rehearsal):
        lines += [] if title == _PLAN else [f"**{title}**", ""]
        lines += [*_table(rows[:_MOST]), ""] if rows else []
        if len(rows) > _MOST:
            lines += [f"... and {len(rows) - _MOST} more", ""]
    for each in rehearsal.errors:
        lines += [*(f"    {line}" for line in each.splitlines()), ""]
    return "\n".join(lines)


def _sections(rehearsal: Rehearsal) -> Iterator[tuple[str, _Lines, str]]:
    """Titles, lines and notes; a section that has nothing to say is left out, but for the plan and the sign-ins."""
    yield from _sections_of_plan(rehearsal)
    if rehearsal.losses:
        lines = [
            {"cluster": each.cluster, "lost": "; ".join(each.lines), "approved": "yes" if each.is_approved else "no"}
            for each in rehearsal.losses
        ]
        yield "credentials in use that would be lost", lines, ""
    failed = [*_failed(rehearsal.sign_ins, "while it ran"), *_failed(rehearsal.new_pods, "pods that start afterwards")]
    worked, refused = rehearsal.worked_sign_ins, rehearsal.failed_sign_ins
    yield "failed sign-ins", failed, f"{refused} failed, {worked} worked, {len(rehearsal.sign_ins)} clients"
    if rehearsal.restarts:
        lines = [
            {**_owner(each.owner), "Deployment": ", ".join(each.deployments), "because": each.reason}
            for each in rehearsal.restarts
        ]
        yield "pods that restart", lines, ""


def _sections_of_plan(rehearsal: Rehearsal) -> Iterator[tuple[str, _Lines, str]]:
    yield _PLAN, list(_plan(rehearsal)), _LEGEND
    if lost := rehearsal.lost():
        lines = [
            {
                "resource": each.step.name,
                "operation": each.step.operation.value,
                "because": why(each.step),
                "protected": "yes" if each.step.is_protected else "",
            }
            for each in lost
        ]
        yield "replaced or deleted", lines, ""


def _plan(rehearsal: Rehearsal) -> Iterator[dict[str, str]]:
    for owner, row in rehearsal.plan().items():
        yield {**_owner(owner), **{kind.value: cell(row.get(kind)) for kind in ResourceKind}}


def _owner(owner: ResourceOwner) -> dict[str, str]:
    return {
        "cluster": owner.cluster,
        "identity": owner.identity or (_OF_CLUSTER if owner.cluster else _SHARED),
    }


def _failed(sign_ins: Iterable[SignIns], when: str) -> _Lines:
    return [
        {**_owner(each.owner), "failed": str(count), "of": str(each.worked + each.failed.total()), "when": when}
        | {"because": cause}
        for each in sign_ins
        for cause, count in each.failed.most_common()
    ]


def _facts(rehearsal: Rehearsal) -> Iterator[str]:
    if len(rehearsal.stacks) > 1:
        yield f"stacks: {', '.join(rehearsal.stacks)}"
    for each in rehearsal.moves:
        yield (
            f"{each.cluster} moves from {each.source} to {each.target}: run `{each.command}` before any up, as this "
            "rehearsal did; up refuses the change without it"
        )
    if rehearsal.unused:
        yield f"nobody may use these any more, so their clients' failures do not count: {', '.join(rehearsal.unused)}"
    if rehearsal.second is not None:
        yield "a second run changes nothing" if not rehearsal.second else "a second run changes something again"
    if rehearsal.left is not None:
        yield "down leaves nothing" if not rehearsal.left else f"down leaves: {', '.join(rehearsal.left)}"
    if rehearsal.kept:
        yield f"recoverable for a while: {', '.join(rehearsal.kept)}"
    for text in rehearsal.left_out:
        yield f"not rehearsed as it is: {text}"
    times = ", ".join(f"{name} {value:.0f} s" for name, value in rehearsal.seconds.items())
    yield f"time: {times}; --seed {rehearsal.seed} repeats it"


def _styled(line: Mapping[str, str]) -> dict[str, Text]:
    return {name: Text(value) for name, value in line.items()}


def _table(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    names = list(rows[0])
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(_escaped(row[name]) for name in names)} |"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: names and messages come from a configuration that anybody may propose."""
    return " ".join(text.split()).translate(_MARKS)
