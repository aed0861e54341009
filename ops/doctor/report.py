"""What `idstack doctor` prints: the findings, what was not checked, and one line that sums up."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from rich.text import Text

from identity.credentials.symptoms import find
from ops.doctor.diagnosis import CheckResult, CheckStatus
from ops.doctor.model.check import Stage

_STYLES: Final = {CheckStatus.BROKEN: "bold red", CheckStatus.NOT_CHECKED: "yellow"}
# Their errors are those of whoever runs the doctor, not of an identity.
_OF_THIS_MACHINE: Final = (Stage.ENGINE, Stage.BACKEND, Stage.ACCESS)
_SOUND: Final = "nothing is broken"


def report(stack: str, results: Sequence[CheckResult]) -> Text:
    """The report for people. What is the same of several identities is said once."""
    not_checked = _paragraphs(results, CheckStatus.NOT_CHECKED)
    return Text("\n\n").join([*findings(results), *not_checked, summary(stack, results)])


def findings(results: Sequence[CheckResult]) -> list[Text]:
    """A paragraph for what is broken, with its cause and its fix."""
    return _paragraphs(results, CheckStatus.BROKEN)


def _paragraphs(results: Sequence[CheckResult], status: CheckStatus) -> list[Text]:
    return [_paragraph(status, group) for group in _groups(each for each in results if each.status is status)]


def _groups(results: Iterable[CheckResult]) -> list[list[CheckResult]]:
    """Those that say the same beside each other, in the order of their first. One reason may hold up many checks."""
    groups: dict[tuple[str, ...], list[CheckResult]] = {}
    for each in results:
        finding = (each.stage, each.check, each.fix) if each.status is CheckStatus.BROKEN else ()
        groups.setdefault((each.evidence, *finding), []).append(each)
    return list(groups.values())


def _paragraph(status: CheckStatus, group: Sequence[CheckResult]) -> Text:
    first = group[0]
    found = _finding(first) if status is CheckStatus.BROKEN else {"why": first.evidence}
    lines = [Text.assemble((status.replace("-", " "), _STYLES[status]), f"  {_titles(group)}{_places(group)}")]
    lines += [Text(f"    {name:5}  {text}") for name, text in found.items()]
    return Text("\n").join(lines)


def _finding(result: CheckResult) -> dict[str, str]:
    symptom = find(result.evidence) if result.stage not in _OF_THIS_MACHINE else None
    more = {"more": f"`idstack explain {shlex.quote(symptom.name)}`"} if symptom else {}
    return {"found": result.evidence, "fix": result.fix, **more}


def _titles(group: Iterable[CheckResult]) -> str:
    return ", ".join(dict.fromkeys(map(_title, group)))


def _title(result: CheckResult) -> str:
    return result.stage if result.stage == result.check else f"{result.stage} ({result.check})"


def _places(group: Sequence[CheckResult]) -> str:
    by_cluster: dict[str, list[str]] = {}
    for each in group:
        if each.cluster is not None:
            by_cluster.setdefault(each.cluster, []).extend([each.identity] if each.identity else [])
    places = [" ".join([cluster, ", ".join(dict.fromkeys(fields))]).rstrip() for cluster, fields in by_cluster.items()]
    return f": {'; '.join(places)}" if places else ""


def summary(stack: str, results: Sequence[CheckResult]) -> Text:
    """The counts, in one line."""
    counts = {status: sum(each.status is status for each in results) for status in CheckStatus}
    identities = len({(each.cluster, each.identity) for each in results if each.identity})
    made = len(results) - counts[CheckStatus.NOT_CHECKED]
    broken = len(_groups(each for each in results if each.status is CheckStatus.BROKEN))
    parts = [
        f"{broken} {'finding' if broken == 1 else 'findings'}" if broken else _SOUND,
        f"{made} {'check' if made == 1 else 'checks'}" + (f" of {identities} identities" if identities else ""),
    ]
    if count := counts[CheckStatus.SKIPPED]:
        parts.append(f"{count} skipped behind a broken stage")
    if count := counts[CheckStatus.NOT_CHECKED]:
        parts.append(f"{count} could not be made")
    return Text.assemble(f"{stack}: ", (parts[0], "red" if broken else "green"), f"; {'; '.join(parts[1:])}")
