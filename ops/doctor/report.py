"""The output of `idstack doctor`: the findings, the checks that were not possible, and a summary."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.text import Text

from identity.symptoms import find
from ops.doctor.checks.check import CheckResult, CheckStatus, Stage
from ops.outputs.tables import counted

_STYLES: Final = {CheckStatus.BROKEN: "bold red", CheckStatus.NOT_CHECKED: "yellow"}
# Their errors concern the user of the doctor, not an identity.
_OF_THIS_MACHINE: Final = (Stage.ENGINE, Stage.BACKEND, Stage.ACCESS)


def report(stack: str, results: Sequence[CheckResult]) -> Text:
    """The report as text, with one paragraph for the same finding of several identities."""
    not_checked = findings(results, CheckStatus.NOT_CHECKED)
    return Text("\n\n").join([*findings(results), *not_checked, summary(stack, results)])


def findings(results: Sequence[CheckResult], status: CheckStatus = CheckStatus.BROKEN) -> list[Text]:
    """A paragraph for each finding with its cause and its fix, or for the checks of another status."""
    return [_paragraph(status, group) for group in _groups(result for result in results if result.status is status)]


def _groups(results: Iterable[CheckResult]) -> list[list[CheckResult]]:
    """Groups of results with the same text, in the order of their first."""
    groups: dict[tuple[str, ...], list[CheckResult]] = {}
    for result in results:
        finding = (result.stage, result.check, result.fix) if result.status is CheckStatus.BROKEN else ()
        groups.setdefault((result.evidence, *finding), []).append(result)
    return list(groups.values())


def _paragraph(status: CheckStatus, group: Sequence[CheckResult]) -> Text:
    first = group[0]
    fields = {"why": first.evidence}
    if status is CheckStatus.BROKEN:
        symptom = find(first.evidence) if first.stage not in _OF_THIS_MACHINE else None
        more = {"more": f"`.venv/bin/idstack explain {shlex.quote(symptom.name)}`"} if symptom else {}
        fields = {"found": first.evidence, "fix": first.fix, **more}
    checks = {one.stage if one.stage == one.check else f"{one.stage} ({one.check})": None for one in group}
    lines = [Text.assemble((status.replace("-", " "), _STYLES[status]), f"  {', '.join(checks)}{_places(group)}")]
    lines += [Text(f"    {name:5}  {text}") for name, text in fields.items()]
    return Text("\n").join(lines)


def _places(group: Sequence[CheckResult]) -> str:
    by_cluster: dict[str, list[str]] = {}
    for result in group:
        if result.cluster is not None:
            by_cluster.setdefault(result.cluster, []).extend([result.identity] if result.identity else [])
    places = [" ".join([cluster, ", ".join(dict.fromkeys(fields))]).rstrip() for cluster, fields in by_cluster.items()]
    return f": {'; '.join(places)}" if places else ""


def document(stack: str, results: Sequence[CheckResult]) -> dict[str, Any]:
    """The report for scripts (docs/reference/json.md)."""
    return {"stack": stack, "summary": _counts(results), "results": [result.to_json() for result in results]}


def _counts(results: Sequence[CheckResult]) -> dict[str, int]:
    """The counts of the summary: a finding may concern several identities."""
    counts = {status: sum(result.status is status for result in results) for status in CheckStatus}
    return {
        "findings": len(_groups(result for result in results if result.status is CheckStatus.BROKEN)),
        "checks": len(results) - counts[CheckStatus.NOT_CHECKED],
        "identities": len({(result.cluster, result.identity) for result in results if result.identity}),
        "skipped": counts[CheckStatus.SKIPPED],
        "notChecked": counts[CheckStatus.NOT_CHECKED],
    }


def summary(stack: str, results: Sequence[CheckResult]) -> Text:
    broken, checked, identities, skipped, not_checked = _counts(results).values()
    parts = [
        counted(broken, "finding") if broken else "nothing is broken",
        counted(checked, "check") + (f" of {counted(identities, 'identity')}" if identities else ""),
    ]
    if skipped:
        parts.append(f"{skipped} skipped behind a broken stage")
    if not_checked:
        parts.append(f"{not_checked} not possible")
    return Text.assemble(f"{stack}: ", (parts[0], "red" if broken else "green"), f"; {'; '.join(parts[1:])}")
