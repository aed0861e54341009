"""Makes the checks, and blames the first broken one of each chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from ops.doctor.model.check import Check, Place, Stage, WholeStack
from ops.world.parts import Part
from ops.world.seen import NotReadError
from ops.world.stack_world import StackWorld


class CheckStatus(StrEnum):
    """How a check ended. `skipped`: it fails as well or cannot be made, and an earlier stage of its chain is why."""

    OK = "ok"
    BROKEN = "broken"
    SKIPPED = "skipped"
    NOT_CHECKED = "not-checked"


class ExitCode(IntEnum):
    """What `idstack doctor` exits with; 2 is wrong usage."""

    SOUND = 0
    BROKEN = 1
    NOT_CHECKED = 3  # nothing is broken, as far as it was seen


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """A check of one place: its evidence, or why it was not made; and the fix of what is broken."""

    cluster: str | None
    identity: str | None
    stage: Stage
    check: str
    status: CheckStatus
    evidence: str = ""
    fix: str = ""

    def to_json(self) -> dict[str, str | None]:
        """The result for scripts."""
        return dict(vars(self))


def diagnose(world: StackWorld, checks: Iterable[Check]) -> list[CheckResult]:
    """The result of every check, in their order; several for one that finds several faults in a place."""
    results: list[CheckResult] = []
    hidden: set[Part] = set()
    for check in checks:
        # The faults of one check are all shown.
        before = tuple(each for each in results if each.status is CheckStatus.BROKEN and each.stage.is_in_the_chain)
        made = list(_results(world, check, before, is_hidden=not hidden.isdisjoint(check.needs)))
        if any(each.status is CheckStatus.BROKEN for each in made):
            hidden |= check.hides
        results += made
    return results


def exit_code(results: Iterable[CheckResult]) -> ExitCode:
    """What the command exits with."""
    found = {each.status for each in results}
    if CheckStatus.BROKEN in found:
        return ExitCode.BROKEN
    return ExitCode.NOT_CHECKED if CheckStatus.NOT_CHECKED in found else ExitCode.SOUND


def _results(
    world: StackWorld, check: Check, before: tuple[CheckResult, ...], *, is_hidden: bool
) -> Iterator[CheckResult]:
    """`is_hidden`: something broken before hides what the check needs to see."""

    def unmade(cluster: str | None, identity: str | None) -> CheckStatus:
        is_explained = is_hidden or _is_explained(before, cluster, identity)
        return CheckStatus.SKIPPED if is_explained else CheckStatus.NOT_CHECKED

    try:
        places = list(check.places(world))
    except NotReadError as reason:
        yield _result(check, WholeStack(), None, unmade(None, None), str(reason))
        return
    for place in places:
        try:
            faults = list(check.find(world, place))
        except NotReadError as reason:
            status = unmade(place.cluster, place.identity)
            yield _result(check, place, None, status, _with_needs(check, reason))
            continue
        if not faults:
            yield _result(check, place, None, CheckStatus.OK)
        for fault in faults:
            cluster = fault.cluster or place.cluster
            is_explained = _is_explained(before, cluster, place.identity)
            status = CheckStatus.SKIPPED if is_explained else CheckStatus.BROKEN
            yield _result(check, place, cluster, status, fault.evidence, fault.fix)


def _is_explained(before: Iterable[CheckResult], cluster: str | None, identity: str | None) -> bool:
    return any(_concerns(each, cluster, identity) for each in before)


def _concerns(broken: CheckResult, cluster: str | None, identity: str | None) -> bool:
    """Whether something broken there explains a fault here.

    What is about the stack, or about a cluster, explains what is about a part of it. A cluster that does not run is
    explained by any identity of its.
    """
    if broken.cluster is None:
        return True
    return broken.cluster == cluster and (identity is None or broken.identity in (None, identity))


def _with_needs(check: Check, reason: NotReadError) -> str:
    """With the right that it takes, if that is what is missing."""
    return f"{reason} (it takes {check.needs[0]})" if reason.is_forbidden else str(reason)


def _result(
    check: Check, place: Place, cluster: str | None, status: CheckStatus, evidence: str = "", fix: str = ""
) -> CheckResult:
    return CheckResult(
        cluster=cluster or place.cluster,
        identity=place.identity,
        stage=check.stage,
        check=check.name,
        status=status,
        evidence=evidence,
        fix=fix,
    )
