"""What `idstack doctor` prints: the findings, what was not checked, and one line that sums up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.text import Text

from ops.doctor.diagnosis import CheckResult, CheckStatus

_STYLES: Final = {CheckStatus.BROKEN: "bold red", CheckStatus.NOT_CHECKED: "yellow"}
_SOUND: Final = "nothing is broken"


def report(stack: str, results: Sequence[CheckResult]) -> Text:
    """The report for people. What is the same of several identities is said once."""
    not_checked = _paragraphs(results, CheckStatus.NOT_CHECKED)
    return Text("\n\n").join([*findings(results), *not_checked, _summary(stack, results)])


def findings(results: Sequence[CheckResult]) -> list[Text]:
    """A paragraph for what is broken, with its cause and its fix."""
    return _paragraphs(results, CheckStatus.BROKEN)


def _paragraphs(results: Sequence[CheckResult], status: CheckStatus) -> list[Text]:
    return [_paragraph(status, group) for group in _groups(each for each in results if each.status is status)]


def _groups(results: Iterable[CheckResult]) -> list[list[CheckResult]]:
    """Those that say the same beside each other, in the order of their first."""
    groups: dict[tuple[str, str, str, str], list[CheckResult]] = {}
    for each in results:
        groups.setdefault((each.stage, each.check, each.evidence, each.fix), []).append(each)
    return list(groups.values())


def _paragraph(status: CheckStatus, group: Sequence[CheckResult]) -> Text:
    first = group[0]
    found = {"found": first.evidence, "fix": first.fix} if status is CheckStatus.BROKEN else {"why": first.evidence}
    lines = [Text.assemble((status.replace("-", " "), _STYLES[status]), f"  {_title(first)}{_places(group)}")]
    lines += [Text(f"    {name:5}  {text}") for name, text in found.items()]
    return Text("\n").join(lines)


def _title(result: CheckResult) -> str:
    return result.stage if result.stage == result.check else f"{result.stage} ({result.check})"


def _places(group: Sequence[CheckResult]) -> str:
    by_cluster: dict[str, list[str]] = {}
    for each in group:
        if each.cluster is not None:
            by_cluster.setdefault(each.cluster, []).extend([each.identity] if each.identity else [])
    places = [" ".join([cluster, ", ".join(dict.fromkeys(fields))]).rstrip() for cluster, fields in by_cluster.items()]
    return f": {'; '.join(places)}" if places else ""


def _summary(stack: str, results: Sequence[CheckResult]) -> Text:
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
