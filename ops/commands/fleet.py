"""`idstack fleet`: many stacks from one file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.text import Text

from identity.checkout import DIRTY
from identity.credentials import rfc3339
from ops.commands.options import JsonOption, Screen
from ops.fleet.file import DEFAULT_FILE, load_fleet
from ops.fleet.rollout import DONE, FailedRun, Rollout, StackLog
from ops.fleet.stacks import FleetEnvironment, FleetStack, matrices, require_files, require_one_backend, write_file
from ops.fleet.tree import NAMESPACE, differences, tree, write
from ops.outputs.rows import RenewalOverdueError, has_any_probes, rendered, rows, running_token_rows
from ops.outputs.tables import FittedTable, Line, counted
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import ROOT, local_paths
from ops.stack.errors import CommandError, RunInterruptedError, WrongUsageError, message
from ops.stack.stack_document import BACKEND_VARIABLE
from ops.stack.state import State, outputs_of
from ops.world.cluster_state import ProbeResult, ProbeResults, local_probes

fleet = typer.Typer(help="Many stacks of one file (docs/guides/fleet.md).", no_args_is_help=True, add_completion=False)

FileOption: TypeAlias = Annotated[Path, typer.Option("--file", "-f", help="The fleet file.", show_default=True)]
EnvironmentOption: TypeAlias = Annotated[
    str | None, typer.Option("--environment", "-e", help="Name of the environment; all of them by default.")
]
DEFAULT = Path(DEFAULT_FILE)


def chosen(file: Path, name: str | None) -> Sequence[FleetEnvironment]:
    """The environment of that name in a fleet file, or all of them in their order.

    Raises WrongUsageError for an unknown name, and as `load_fleet` and `require_one_backend` do.
    """
    fleet = load_fleet(file)
    environments = [environment for environment in fleet if name in (None, environment.name)]
    if not environments:
        known = ", ".join(environment.name for environment in fleet)
        raise WrongUsageError(f"--environment: the fleet has no environment {name}; it has {known}")
    for environment in environments:
        require_one_backend(environment, ROOT)
    return environments


@fleet.command()
def prepare(file: FileOption = DEFAULT, name: EnvironmentOption = None, as_json: JsonOption = False) -> None:
    """Write the file of each stack, and create the stacks that the backend does not have; nothing is deployed.

    Stacks are created with the environment's backend and key. A local one is created by its first `up`. Commit the
    files.
    """
    screen = Screen(as_json)
    written: list[str] = []
    created: list[str] = []
    for environment in chosen(file, name):
        written += [stack.file_name for stack in environment.stacks if write_file(stack, ROOT)]
        if environment.is_local:
            continue
        known = set(Engine(environment.stacks[0].name, ROOT, screen.output).stacks())
        for stack in environment.stacks:
            if stack.name not in known:
                Engine(stack.name, ROOT, screen.output).create()
                created.append(stack.name)
    screen.show(
        {"written": written, "created": created},
        f"files written: {', '.join(written) or 'none'}",
        f"stacks created: {', '.join(created) or 'none'}",
    )


_YES: Final = "--yes"


@fleet.command()
def up(
    file: FileOption = DEFAULT,
    name: EnvironmentOption = None,
    parallel: Annotated[int, typer.Option(help="How many stacks of a wave are deployed at once.", min=1)] = 8,
    yes: Annotated[
        bool, typer.Option(_YES, "-y", help="Do not ask, because parallel runs cannot. Required for stacks on Azure.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Deploy a fleet: shared stacks, canaries, then wave after wave, each stack by `idstack up`.

    After the first stack that fails, or that cannot sign in, no other starts; runs in progress end normally. Run it
    again to continue: nothing changes in the stacks that are up.
    """
    screen = Screen(as_json)
    environments = chosen(file, name)
    for environment in environments:
        if not environment.is_local and not yes:
            raise CommandError(message("fleet.no-prompt", environment=environment.name))
        require_files(environment, file, ROOT)
    rollouts: list[Rollout] = []
    for environment in environments:
        screen.step(environment.name)
        arguments = () if environment.is_local else (_YES,)
        rollout = Rollout(environment, arguments, ROOT, parallel, screen.console.print)
        rollouts.append(rollout)
        rollout.run()
        screen.console.print(rollout.summary())
        if rollout.is_stopped:
            break
    if as_json:
        screen.document({"environments": [_to_json(rollout) for rollout in rollouts]})
    _require_all_up(screen, rollouts[-1])


def _require_all_up(screen: Screen, rollout: Rollout) -> None:
    """Raise CommandError unless the rollout ended; what failed is printed with the end of its log."""
    for run in rollout.failed:
        screen.console.print(f"\n{run.stack.name}, the end of {run.log.file}:")
        screen.console.print("\n".join(run.tail))
    unfinished = [run.stack.name for run in rollout.runs if run.outcome not in DONE]
    if rollout.interrupted_by:
        said = message("fleet.interrupted", by=rollout.interrupted_by, unfinished=", ".join(unfinished))
        raise RunInterruptedError(said, rollout.interrupted_by)
    if failed := [run.stack.name for run in rollout.failed]:
        others = [name for name in unfinished if name not in failed]
        rest = f" Not begun: {', '.join(others)}." if others else ""
        raise CommandError(message("fleet.not-up", failed=", ".join(failed), rest=rest))


def _to_json(rollout: Rollout) -> dict[str, Any]:
    return {
        "environment": rollout.environment.name,
        "stacks": [
            {
                "stack": run.stack.name,
                "wave": run.wave,
                "outcome": run.outcome,
                "seconds": round(run.seconds, 1),
                "log": str(run.log.file) if run.seconds else None,
            }
            for run in rollout.runs
        ],
    }


@fleet.command()
def status(file: FileOption = DEFAULT, name: EnvironmentOption = None, as_json: JsonOption = False) -> None:
    """Show each stack: wave, last run and its commit, nearest expiry, overdue renewals, the last failed sign-in.

    Exits with 1 if a stack is not deployed, a certificate has expired or a sign-in fails, and with 3 if all is
    well but a renewal is overdue by two days, as `idstack status` does. It does not ask the Pulumi Kubernetes Operator.
    """
    screen = Screen(as_json)
    environments = chosen(file, name)
    statuses = [stack for environment in environments for stack in _statuses(environment, screen.output)]
    screen.show({"stacks": [stack.to_json() for stack in statuses]}, FittedTable([_line(stack) for stack in statuses]))
    if any(environment.operator for environment in environments):
        screen.console.print(message("fleet.operator", namespace=NAMESPACE))
    if unhealthy := [stack.stack.name for stack in statuses if not stack.is_healthy]:
        raise CommandError(f"these stacks are not up, or a sign-in in them fails: {', '.join(unhealthy)}")
    if overdue := [stack.stack.name for stack in statuses if stack.overdue]:
        raise RenewalOverdueError(message("fleet.overdue", names=", ".join(overdue)), datetime.now(UTC))


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


def _statuses(environment: FleetEnvironment, output: int) -> list[StackStatus]:
    """The status of every stack by its state, in the order of the waves; `output` is a file descriptor for engines.

    Sign-ins are those of the credential probes of local stacks; those on Azure are in the probes' metrics
    (docs/guides/monitoring.md). Raises CommandError if a state, or a local stack's cluster, cannot be read.
    """
    waves = [(wave.name, stack) for wave in environment.waves for stack in wave.stacks]
    if environment.is_local and not local_paths().engine.exists():
        states: dict[str, State] = {}
    else:
        # A stack without a file, which would record the backend, is looked for in the environment's as well.
        caller = {**os.environ, **({BACKEND_VARIABLE: environment.backend} if environment.backend is not None else {})}

        def engine(stack: str) -> Engine:
            return Engine(stack, ROOT, output, caller=caller)

        known = set(engine(environment.stacks[0].name).stacks())
        names = [stack.name for _, stack in waves if stack.name in known]
        with ThreadPoolExecutor(_MAX_WORKERS) as threads:
            states = dict(zip(names, threads.map(lambda name: engine(name).state(), names), strict=True))
    cloud = local_cloud.of(environment.stacks[0].name) if states else None
    results = local_probes(cloud) if cloud and any(map(has_any_probes, map(outputs_of, states.values()))) else None
    now = datetime.now(UTC)
    logged = (StackStatus(stack=one, wave=wave, last_failed=StackLog(ROOT, one.name).failure()) for wave, one in waves)
    return [_status(known, states.get(known.stack.name), results, now) for known in logged]


def _status(known: StackStatus, state: State | None, results: ProbeResults | None, now: datetime) -> StackStatus:
    """What is known of a stack, and what its state and its probes say."""
    outputs = outputs_of(state) if state else {}
    if state is None or not outputs:
        return known
    identities = rows(outputs, results)
    probed = [(row.identity, probe) for row in identities for probe in row.probes]
    probed += [(row.of.row.field, row.probe) for row in running_token_rows(outputs, results)]
    dates = [row.not_after for row in identities if row.not_after is not None]
    manifest = state["deployment"].get("manifest")
    return replace(
        known,
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
    )


def _failure(identity: str, probe: ProbeResult) -> SignInFailure:
    if probe.report is None:
        return SignInFailure(identity=identity, error=probe.problem or "no report", at=None)
    steps = (probe.report.sign_in, probe.report.proof)
    failed = next((step for step in steps if not step.ok), steps[0])
    return SignInFailure(identity=identity, error=failed.error or "not tried yet", at=failed.at)


def _line(stack: StackStatus) -> Line:
    failed = stack.last_failed
    if stack.is_up:
        last = Text(f"{stack.updated:%Y-%m-%d %H:%M}" if stack.updated else "not known")
    else:
        last = Text("not up", "bold red")
    if failed is not None:
        last = Text(f"failed {failed.at:%Y-%m-%d %H:%M}", "bold red")
    commit, dirty, _ = (stack.commit or "").partition(DIRTY)
    expiry = Text(f"{stack.expires:%Y-%m-%d}" if stack.expires else "")
    if stack.expired:
        expiry.stylize("bold red")
    return {
        "stack": stack.stack.name,
        "environment": stack.stack.environment,
        "wave": stack.wave,
        "last run": last,
        "commit": f"{commit[:10]}{dirty}",
        "nearest expiry": expiry,
        "overdue renewals": Text(", ".join(stack.overdue), "yellow"),
        "failed sign-in": Text(str(stack.failure) if stack.failure else "", "bold red"),
    }


@fleet.command()
def matrix(
    name: Annotated[str, typer.Option("--environment", "-e", help="Name of the environment.")],
    file: FileOption = DEFAULT,
) -> None:
    """Print the matrix of each wave, a line `<job>=<JSON>` for each job, as a step writes its outputs.

    The line of a job without stacks ends with `=`, so that the workflow skips the job.
    """
    [environment] = chosen(file, name)
    for job, stacks in matrices(environment).items():
        print(f"{job}={json.dumps(stacks) if stacks else ''}")


@fleet.command()
def render(
    file: FileOption = DEFAULT,
    directory: Annotated[Path, typer.Option("--directory", "-d", help="Directory of the tree.")] = Path("fleet"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if the directory is not what would be written.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the objects of the Pulumi Kubernetes Operator as a kustomize tree."""
    screen = Screen(as_json)
    files = tree(load_fleet(file))
    diffs = differences(directory, files)
    if as_json:
        screen.document({"files": sorted(map(str, files)), "differences": diffs})
    if check:
        if diffs and not as_json:
            screen.console.print("\n".join(diffs))
        if diffs:
            count = counted(len(diffs), "file")
            raise CommandError(message("fleet.differs", directory=directory, file=file, count=count))
        return
    write(directory, files)
    if not as_json:
        screen.console.print(f"{counted(len(files), 'file')} in {directory}, {len(diffs)} of them changed")
