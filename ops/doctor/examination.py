"""The checks in the order of their stages, and the findings about a stack for `status`, `graph` and `down`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from identity.credentials import rfc3339
from identity.outputs import StackOutputs
from ops.doctor.checks import federation, pods, sign_in, stack, vault
from ops.doctor.checks.check import Check, CheckResult, CheckStatus, ExitCode, Stage, diagnose
from ops.outputs.rows import Row, TokenRow, has_any_probes, rows, running_token_rows
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import StateResource
from ops.world import cluster_state
from ops.world.azure import ManagedIdentities, compare_managed_identities
from ops.world.cluster_state import ClusterState
from ops.world.reader import EVERYTHING, Selection, probe_results, read_locks, read_world
from ops.world.seen import Part, Unread

_IN_ORDER: Final = list(Stage)
_MODULES: Final = (stack, vault, pods, federation, sign_in)
CHECKS: Final[tuple[Check, ...]] = tuple(
    sorted(
        (check for module in _MODULES for check in vars(module).values() if isinstance(check, Check)),
        key=lambda check: _IN_ORDER.index(check.stage),
    )
)


def checks_of(selection: Selection) -> list[Check]:
    """The checks that can explain a fault of the selection, from the vault on."""
    if selection.is_everything:
        return list(CHECKS)
    is_cluster = selection.identity is None and selection.pod is None
    return [
        check
        for check in CHECKS
        if check.stage.is_in_the_chain
        # Checks of other stages read the stack's file to tell what prevents a sign-in.
        and (is_cluster or check.stage is not Stage.CONFIGURATION or Part.CONFIGURATION not in check.needs)
    ]


# The checks of `status`, `graph` and the metrics, which need the backend, the role Reader in Azure, the objects of the
# management cluster and, on this machine, the probes' reports. Their own tables have the sign-ins.
STATUS_CHECKS: Final[tuple[Check, ...]] = (
    stack.abandoned_lock,
    stack.pending_operations,
    stack.last_run,
    stack.azure,
    *(check for check in CHECKS if check.stage in (Stage.VAULT, Stage.CLASS, Stage.MOUNT)),
    pods.pod,
    sign_in.registration,
    sign_in.role,
)


@dataclass(frozen=True)
class Examination:
    """The results of `STATUS_CHECKS`, and what other tables show of the world that they judge.

    `cluster` is None for a stack without a management cluster; `managed` are the managed identities of the outputs.
    """

    results: tuple[CheckResult, ...] = ()
    cluster: ClusterState | None = None
    managed: ManagedIdentities = field(default_factory=ManagedIdentities)

    @property
    def findings(self) -> tuple[CheckResult, ...]:
        """The broken checks, each with its evidence and its fix."""
        return tuple(result for result in self.results if result.status is CheckStatus.BROKEN)

    @property
    def cluster_state(self) -> ClusterState:
        """What was read of the management cluster; empty without one."""
        return self.cluster or ClusterState()

    def unchecked(self, is_meant: Callable[[CheckResult], object] = bool) -> tuple[str, ...]:
        """Why these checks were not possible, each reason once."""
        unchecked = (result for result in self.results if result.status is CheckStatus.NOT_CHECKED)
        return tuple(dict.fromkeys(result.evidence for result in unchecked if is_meant(result)))

    @property
    def is_complete(self) -> bool:
        """Whether the last run of the stack has completed, by its backend."""
        return all(finding.stage is not Stage.BACKEND for finding in self.findings)

    def is_broken(self, cluster: str | None, identity: str | None) -> bool | None:
        """Whether something is broken there; None if nothing is, but some checks in Azure were not possible."""
        of_pods = (Stage.CLASS, Stage.MOUNT, Stage.VOLUME)
        at = self._at(cluster, identity)
        own = {one.status for one in at if one.status is CheckStatus.BROKEN or one.stage not in of_pods}
        if CheckStatus.BROKEN in own:
            return True
        return None if CheckStatus.NOT_CHECKED in own else False

    def is_made(self, cluster: str, identity: str, check: str) -> bool:
        """Whether a check was possible in this place."""
        made = (CheckStatus.OK, CheckStatus.BROKEN)
        return any(one.check == check and one.status in made for one in self._at(cluster, identity))

    def of(self, cluster: str | None, identity: str | None, *checks: str) -> tuple[CheckResult, ...]:
        """The findings about one identity, or (None) about the whole stack, of these checks or of all."""
        found = (one for one in self._at(cluster, identity) if one.status is CheckStatus.BROKEN)
        return tuple(one for one in found if not checks or one.check in checks)

    def _at(self, cluster: str | None, identity: str | None) -> list[CheckResult]:
        return [one for one in self.results if (one.cluster, one.identity) == (cluster, identity)]


class UnreadError(CommandError):
    """Nothing that was read is broken, but not everything was. `are_shown`: the output has the reasons."""

    exit_code = ExitCode.NOT_CHECKED

    def __init__(self, reasons: Sequence[str], *, are_shown: bool = False) -> None:
        what = f"not read, so that it may be broken ({len(reasons)})"
        super().__init__(f"{what}: the output says why" if are_shown else "\n".join([f"{what}:", *reasons]))


class NotSignedInError(CommandError):
    """Nothing can be read in Azure."""


def examine(engine: Engine, outputs: StackOutputs[str], selection: Selection = EVERYTHING) -> Examination:
    """Check the selection of a stack with these outputs now.

    Raises NotSignedInError, and CommandError without a local stack's cloud.
    """
    parts = {part for check in STATUS_CHECKS for part in check.needs} - (set() if engine.is_local else {Part.REPORTS})
    if any(cluster.get("managedIdentities") for cluster in outputs.get("hostedClusters", {}).values()):
        parts.add(Part.MANAGED_IDENTITIES)
    world = read_world(engine, parts, selection)
    if isinstance(world.sign_in, str):
        [refused] = [one for one in diagnose(world, [stack.azure]) if one.status is CheckStatus.BROKEN]
        raise NotSignedInError(f"signing in to Azure: {refused.evidence}; {refused.fix}")
    managed = compare_managed_identities(world.managed_identities, outputs)
    managed = replace(managed, rows=tuple(selection.of_rows(managed.rows)))
    return Examination(tuple(diagnose(world, STATUS_CHECKS)), cluster_state.compare(world), managed)


@dataclass(frozen=True, kw_only=True)
class Status(Examination):
    """What `status` and `graph` show of a stack at one moment: its outputs, what was read of them, and its examination.

    `unreachable` says why there are no probes.
    """

    stack: str
    at: datetime
    outputs: StackOutputs[str]
    rows: Sequence[Row]
    accounts: Sequence[TokenRow]
    resources: Collection[StateResource]
    unreachable: CommandError | None = None

    @property
    def unread(self) -> tuple[str, ...]:
        """Why something was not read, each reason once."""
        return tuple(dict.fromkeys((*self.managed.unread, *self.cluster_state.unread, *self.unchecked())))

    def require_sound(self) -> None:
        """Raise CommandError if an identity cannot sign in or is missing, for findings, and without the probes."""
        if self.unreachable is not None:
            raise self.unreachable
        doctor = f"`.venv/bin/idstack doctor --stack {self.stack}`"
        failing = [row for row in self.rows if row.has_expired(self.at) or (row.probes and not row.is_green)]
        if failing:
            names = ", ".join(row.identity for row in failing)
            raise CommandError(f"these identities cannot sign in: {names}. {doctor} finds the cause of each")
        if refused := [row.of.subject for row in self.accounts if not row.probe.is_ready]:
            raise CommandError(f"these service accounts cannot sign in: {', '.join(refused)}. {doctor} finds the cause")
        if wrong := [f"{row.identity} of {row.cluster}" for row in self.managed.rows if row.is_wrong]:
            raise CommandError(
                f"these managed identities are missing in Azure or replaced: {', '.join(wrong)}; "
                f"`.venv/bin/idstack up --stack {self.stack} --refresh` creates them again"
            )
        if self.findings:
            problem = "there are findings" if self.is_complete else "the stack is not complete"
            raise CommandError(f"{problem}: {doctor} also checks the pods' sign-ins")


def read_status(engine: Engine, selection: Selection = EVERYTHING) -> Status:
    """Read the selection now. Raises as `brought_up` and `examine` do."""
    environment, outputs = local_cloud.of(engine.stack), brought_up(engine)
    results = probe_results(engine) if environment is not None and has_any_probes(outputs) else None
    examination = examine(engine, outputs, selection)
    probes = None if isinstance(results, Unread) else results
    accounts = running_token_rows(outputs, probes)
    return Status(
        **vars(examination),
        stack=engine.stack,
        at=datetime.now(UTC),
        outputs=outputs,
        rows=selection.of_rows(rows(outputs, probes)),
        accounts=[row for row in accounts if selection.has(row.of.cluster, row.of.row.field)],
        resources=engine.resources(),
        unreachable=CommandError(results.why) if isinstance(results, Unread) else None,
    )


def brought_up(engine: Engine) -> StackOutputs[str]:
    """The outputs of a stack; raises CommandError if no `up` of it has completed, and names a run in progress."""
    outputs = engine.outputs()
    if not outputs:
        locks = read_locks(engine)
        for lock in () if isinstance(locks, Unread) else locks:
            if lock.runs is not False:
                verb = "is" if lock.runs else "may be"  # of another machine
                raise CommandError(
                    f"no `up` of the stack {engine.stack} has completed: a run {verb} in progress since "
                    f"{rfc3339.render(lock.since)}, by {lock.owner}. Wait until it ends"
                )
        raise CommandError(
            f"no `up` of the stack {engine.stack} has completed, so there is nothing to show; its backend is "
            f"{engine.backend()}. `.venv/bin/idstack up --stack {engine.stack}` brings it up"
        )
    return outputs


_CREDENTIAL_CHECKS: Final = (vault.secret, sign_in.registration)


def ended_credentials(engine: Engine, clusters: Collection[str]) -> str | None:
    """The warning for the deletion of these hosted clusters; None if all their credentials sign in.

    A failed read is a warning, too.
    """
    if not clusters:
        return None
    world = read_world(engine, {part for check in _CREDENTIAL_CHECKS for part in check.needs})
    results = [result for result in diagnose(world, _CREDENTIAL_CHECKS) if result.cluster in clusters]
    consequence = (
        "HyperShift deletes machines, volumes and load balancers with them. It gives up a machine that it cannot "
        "delete for ten minutes: the HostedCluster is deleted, and the machine stays in Azure. `.venv/bin/idstack "
        f"sweep --stack {engine.stack}` lists such machines."
    )
    if broken := [result for result in results if result.status is CheckStatus.BROKEN]:
        ended = "; ".join(f"{result.identity} of {result.cluster} ({result.evidence})" for result in broken)
        return (
            f"HyperShift cannot sign in with all credentials: {ended}. {consequence} `.venv/bin/idstack doctor --stack "
            f"{engine.stack}` has the fix for each: apply it first"
        )
    if unread := dict.fromkeys(result.evidence for result in results if result.status is CheckStatus.NOT_CHECKED):
        return f"the credentials of {', '.join(clusters)} cannot be checked ({'; '.join(unread)}). {consequence}"
    return None
