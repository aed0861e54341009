"""Runs the checks, and finds the first broken one of each chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from ops.doctor.model.check import Check, Place, Stage, WholeStack
from ops.world.seen import NotReadError, Part
from ops.world.stack_world import StackWorld


class CheckStatus(StrEnum):
    """The result of a check. `skipped`: it failed or was not possible because of an earlier stage of its chain."""

    OK = "ok"
    BROKEN = "broken"
    SKIPPED = "skipped"
    NOT_CHECKED = "not-checked"


class ExitCode(IntEnum):
    """The exit codes of `idstack doctor`; 2 is wrong usage."""

    SOUND = 0
    BROKEN = 1
    NOT_CHECKED = 3  # nothing is broken, but some checks were not possible


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of a check in one place: its evidence, or why it was not possible, and the fix of a fault."""

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
    """The results of every check, in their order, one for each fault."""
    results: list[CheckResult] = []
    hidden: set[Part] = set()
    for check in checks:
        # All faults of one check are shown.
        broken = tuple(
            result for result in results if result.status is CheckStatus.BROKEN and result.stage.is_in_the_chain
        )
        own = list(_results(world, check, broken, is_hidden=not hidden.isdisjoint(check.needs)))
        if any(result.status is CheckStatus.BROKEN for result in own):
            hidden |= check.hides
        results += own
    return results


def exit_code(results: Iterable[CheckResult]) -> ExitCode:
    """The exit code of the command."""
    statuses = {result.status for result in results}
    if CheckStatus.BROKEN in statuses:
        return ExitCode.BROKEN
    return ExitCode.NOT_CHECKED if CheckStatus.NOT_CHECKED in statuses else ExitCode.SOUND


def _results(
    world: StackWorld, check: Check, broken: tuple[CheckResult, ...], *, is_hidden: bool
) -> Iterator[CheckResult]:
    """The results of one check; `is_hidden`: an earlier fault hides the parts that it needs."""

    def unmade(cluster: str | None, identity: str | None) -> CheckStatus:
        is_explained = is_hidden or _is_explained(broken, cluster, identity)
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
            is_explained = _is_explained(broken, cluster, place.identity)
            status = CheckStatus.SKIPPED if is_explained else CheckStatus.BROKEN
            yield _result(check, place, cluster, status, fault.evidence, fault.fix)


def _is_explained(broken: Iterable[CheckResult], cluster: str | None, identity: str | None) -> bool:
    return any(_concerns(result, cluster, identity) for result in broken)


def _concerns(broken: CheckResult, cluster: str | None, identity: str | None) -> bool:
    """Whether a broken check explains a fault in this place.

    A fault of the stack, or of a cluster, explains those of its parts. A fault of any identity explains one of its
    cluster.
    """
    if broken.cluster is None:
        return True
    return broken.cluster == cluster and (identity is None or broken.identity in (None, identity))


def _with_needs(check: Check, reason: NotReadError) -> str:
    """The reason, with the right that is missing."""
    return f"{reason} (requires {check.needs[0]})" if reason.is_forbidden else str(reason)


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
