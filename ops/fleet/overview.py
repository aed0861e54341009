"""The status of a fleet: for each stack its last run and commit, the expiry of its credentials, failing sign-ins.

Everything is read from the states. Sign-ins are those of the credential probes of local stacks; those on Azure are in
the probes' metrics (docs/guides/monitoring.md).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from identity.credentials import rfc3339
from ops.fleet.rollout import FailedRun, StackLog
from ops.fleet.stacks import FleetEnvironment, FleetStack
from ops.outputs.rows import read_probes, rendered, rows, running_token_rows
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import local_paths
from ops.stack.stack_document import BACKEND_VARIABLE
from ops.stack.state import State, outputs_of
from ops.world.probes import ProbeResult, ProbeResults

# Each reads one state, which takes about a second of the engine.
_MAX_WORKERS: Final = 8


@dataclass(frozen=True, kw_only=True)
class SignInFailure:
    """A failed sign-in or proof call: of which identity, why, and when, if that is known."""

    identity: str
    error: str
    at: str | None

    def __str__(self) -> str:
        return f"{self.identity}: {self.error}" + (f" ({self.at})" if self.at else "")


@dataclass(frozen=True, kw_only=True)
class StackStatus:
    """One stack of a fleet. `is_up`: it has the outputs of a complete run; without them nothing else is known of it.

    `updated` is the time of its state, `failure` its newest failed sign-in, `last_failed` its last `fleet up` on this
    machine, if that failed.
    """

    stack: FleetStack
    wave: str
    is_up: bool = False
    updated: datetime | None = None
    commit: str | None = None
    expires: datetime | None = None
    expired: tuple[str, ...] = ()
    overdue: tuple[str, ...] = ()
    failure: SignInFailure | None = None
    last_failed: FailedRun | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether it is up, no credential has expired and no known sign-in fails."""
        return self.is_up and self.failure is None and not self.expired

    def to_json(self) -> dict[str, Any]:
        """The stack for scripts; dates are RFC 3339 in UTC."""
        failed = self.last_failed
        return {
            "stack": self.stack.name,
            "environment": self.stack.environment,
            "cluster": self.stack.cluster,
            "wave": self.wave,
            "isUp": self.is_up,
            "updated": rendered(self.updated),
            "commit": self.commit,
            "nearestExpiry": rendered(self.expires),
            "expired": list(self.expired),
            "overdueRenewals": list(self.overdue),
            "failedSignIn": vars(self.failure) if self.failure else None,
            "lastRunFailed": {"at": rendered(failed.at), "reason": failed.reason} if failed else None,
        }


def read(environment: FleetEnvironment, root: Path, output: int) -> list[StackStatus]:
    """The status of every stack, in the order of the waves; `output` is a file descriptor for what engines print.

    Raises CommandError if a state, or a local stack's cluster, cannot be read.
    """
    waves = [(wave.name, stack) for wave in environment.waves for stack in wave.stacks]
    if environment.is_local and not local_paths().engine.exists():
        states: dict[str, State] = {}
    else:
        # A stack without a file, which would record the backend, is looked for in the environment's as well.
        caller = {**os.environ, **({BACKEND_VARIABLE: environment.backend} if environment.backend is not None else {})}

        def engine(stack: str) -> Engine:
            return Engine(stack, root, output, caller=caller)

        known = set(engine(environment.stacks[0].name).stacks())
        names = [stack.name for _, stack in waves if stack.name in known]
        with ThreadPoolExecutor(_MAX_WORKERS) as threads:
            states = dict(zip(names, threads.map(lambda name: engine(name).state(), names), strict=True))
    cloud = local_cloud.of(environment.stacks[0].name) if states else None
    results = read_probes(cloud, *map(outputs_of, states.values()))
    now = datetime.now(UTC)
    return [
        _status(stack, wave, states.get(stack.name), results, StackLog(root, stack.name).failure(), now)
        for wave, stack in waves
    ]


def _status(
    stack: FleetStack,
    wave: str,
    state: State | None,
    results: ProbeResults | None,
    last_failed: FailedRun | None,
    now: datetime,
) -> StackStatus:
    outputs = outputs_of(state) if state else {}
    if state is None or not outputs:
        return StackStatus(stack=stack, wave=wave, last_failed=last_failed)
    identities = rows(outputs, results)
    probed = [(row.identity, probe) for row in identities for probe in row.probes]
    probed += [(row.of.row.field, row.probe) for row in running_token_rows(outputs, results)]
    dates = [row.not_after for row in identities if row.not_after is not None]
    manifest = state["deployment"].get("manifest")
    return StackStatus(
        stack=stack,
        wave=wave,
        is_up=True,
        updated=rfc3339.parse(manifest["time"]) if manifest is not None else None,
        commit=outputs.get("commit"),
        expires=min(dates, default=None),
        expired=tuple(row.identity for row in identities if row.has_expired(now)),
        overdue=tuple(row.identity for row in identities if row.is_overdue(now)),
        failure=max(
            (_failure(*result) for result in probed if not result[1].is_ready),
            key=lambda failure: failure.at or "",
            default=None,
        ),
        last_failed=last_failed,
    )


def _failure(identity: str, probe: ProbeResult) -> SignInFailure:
    if probe.report is None:
        return SignInFailure(identity=identity, error=probe.problem or "no report", at=None)
    steps = (probe.report.sign_in, probe.report.proof)
    failed = next((step for step in steps if not step.ok), steps[0])
    return SignInFailure(identity=identity, error=failed.error or "not tried yet", at=failed.at)
