"""What is wrong with a stack outside of its pods, for the commands that have tables or a drawing of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ops.doctor.diagnosis import CheckResult, CheckStatus, diagnose
from ops.doctor.model.check import Stage
from ops.doctor.registry import STATUS_CHECKS
from ops.stack.engine import Engine
from ops.world.look import DoctorSources, look


@dataclass(frozen=True)
class Examination:
    """The results of `STATUS_CHECKS`."""

    results: tuple[CheckResult, ...] = ()

    @property
    def findings(self) -> tuple[CheckResult, ...]:
        """What is broken, each with its evidence and its fix."""
        return tuple(result for result in self.results if result.status is CheckStatus.BROKEN)

    @property
    def unread(self) -> tuple[str, ...]:
        """What could not be checked, and why, once for each reason."""
        return tuple(
            dict.fromkeys(result.evidence for result in self.results if result.status is CheckStatus.NOT_CHECKED)
        )

    @property
    def is_complete(self) -> bool:
        """Whether the last run of the stack has come to its end, as far as its backend shows."""
        return all(finding.stage is not Stage.BACKEND for finding in self.findings)

    def is_broken(self, cluster: str | None, identity: str | None) -> bool | None:
        """Whether something is broken there; None if nothing was seen to be, and not every check could be made."""
        own = {result.status for result in self.results if (result.cluster, result.identity) == (cluster, identity)}
        if CheckStatus.BROKEN in own:
            return True
        return None if CheckStatus.NOT_CHECKED in own else False

    def of(self, cluster: str | None, identity: str | None, *checks: str) -> Iterator[CheckResult]:
        """The findings about one identity, or (None) about the whole stack, of these checks or of all."""
        for finding in self.findings:
            if (finding.cluster, finding.identity) == (cluster, identity) and (not checks or finding.check in checks):
                yield finding


def examine(engine: Engine) -> Examination:
    """Look at the stack now. Raises CommandError for a local stack without a local cloud, and nothing else."""
    parts = {part for check in STATUS_CHECKS for part in check.needs}
    return Examination(tuple(diagnose(look(DoctorSources.of(engine), parts), STATUS_CHECKS)))
