"""`idstack status`: each identity's secret, certificate and renewal; locally also whether it signs in now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from identity.credentials import rfc3339
from identity.outputs import StackOutputs
from ops.commands.options import (
    DEFAULT_STACK,
    ClusterOption,
    IdentityOption,
    JsonOption,
    Screen,
    StackOption,
    selected,
)
from ops.doctor.examination import NotSignedInError, UnreadError, examine
from ops.doctor.report import findings
from ops.outputs.metrics import render as render_metrics
from ops.outputs.metrics import write as write_metrics
from ops.outputs.rows import Row, read_probes, rows, running_token_rows
from ops.outputs.tables import (
    conditions_table,
    credentials,
    managed_identities_table,
    mounts_table,
    tokens,
    with_caption,
)
from ops.stack import local_cloud, plugins
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, WrongUsageError
from ops.world.cluster_state import ClusterState, read_cluster_state
from ops.world.compared_identities import read_managed_identities
from ops.world.selection import EVERYTHING, Selection


def status(
    stack: StackOption = DEFAULT_STACK,
    cluster: ClusterOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    metrics: Annotated[
        Path | None,
        typer.Option(help="Also write the dates for node_exporter's textfile collector: a .prom file."),
    ] = None,
) -> None:
    """Show each identity: secret, SecretProviderClass, expiry, renewal; locally also its sign-in and proof call.

    It also shows the optional managed identities, the HostedClusters' conditions, the mounted versions in each pod, and
    the findings of `idstack doctor`, but for volumes, sign-ins and conditions. Exits with 1 if an identity cannot sign
    in, there are findings or the stack is not complete, and with 3 if only something about an identity could not be
    read, or a renewal is overdue by two days. Without a sign-in to Azure it shows what the last run delivered.
    """
    screen, now, selection = Screen(as_json), datetime.now(UTC), selected(cluster, identity)
    if metrics is not None and not selection.is_everything:
        raise WrongUsageError("--metrics writes the whole stack: leave out --cluster and --identity")
    identities, unread = show(Engine(stack, output=screen.output), screen, metrics, selection)
    if overdue := [f"{row.identity} of {row.cluster}" for row in identities if row.is_overdue(now)]:
        raise RenewalOverdueError(
            f"the renewal of these certificates is overdue: {', '.join(overdue)}. `.venv/bin/idstack renew --stack "
            f"{stack}` renews what the stack issues, or says why it cannot; a credential that was issued elsewhere has "
            f"to be replaced. {judged_by(now)}"
        )
    if unread:
        raise UnreadError(unread)


def judged_by(now: datetime) -> str:
    """A sentence about the clock that decides whether a renewal is overdue."""
    return f"This machine's clock decides, which shows {rfc3339.render(now)}"


class RenewalOverdueError(CommandError):
    """Every identity signs in, but a renewal is overdue."""

    exit_code = 3


def show(
    engine: Engine, screen: Screen, metrics: Path | None = None, selection: Selection = EVERYTHING
) -> tuple[list[Row], tuple[str, ...]]:
    """Print the selected rows of a stack, write them to a file of metrics if one is named; returns them.

    The texts beside them say why something about an identity was not read.

    Raises CommandError for a stack that does not exist or was never brought up, an expired certificate, a missing
    managed identity, findings of the doctor in Azure, metrics that cannot be written and, locally, a failed sign-in.
    The metrics of a stack that is not complete are not written.
    """
    stack = engine.stack
    environment = local_cloud.of(stack)
    outputs, now = brought_up(engine), datetime.now(UTC)
    try:
        examination = examine(engine, selection)
    except NotSignedInError:
        if not screen.as_json:
            delivered = credentials(selection.of_rows(rows(outputs, None)), now, screen.console.width)
            screen.console.print(with_caption(delivered, "as the last run delivered them: nothing was read in Azure"))
        raise
    reports = read_probes(environment, outputs)
    exchanges = [row for row in running_token_rows(outputs, reports) if selection.has(row.of.cluster, row.of.row.field)]
    identities = selection.of_rows(rows(outputs, reports))
    managed = read_managed_identities(engine, outputs)
    managed = replace(managed, rows=tuple(selection.of_rows(managed.rows)))
    cluster = read_cluster_state(engine, outputs, examination.versions)
    state = cluster or ClusterState()
    conditions = tuple(one for one in state.conditions if selection.has(one.cluster, None))
    state = replace(state, conditions=conditions, mounts=tuple(selection.of_rows(state.mounts)))
    if metrics is not None and examination.is_complete:
        is_broken = examination.is_broken
        write_metrics(metrics, render_metrics(stack, identities, managed.rows, state.mounts, is_broken, now))
    if screen.as_json:
        document = {
            "stack": stack,
            "rows": [row.to_json(now) for row in identities],
            "managedIdentities": managed.to_json(),
        }
        if cluster is not None:
            document["managementCluster"] = state.to_json()
        if exchanges:
            document["serviceAccounts"] = [row.to_json() for row in exchanges]
        if environment is not None:
            document["providers"] = {plugin.name: plugin.kind for plugin in plugins.installed()}
        document["findings"] = [finding.to_json() for finding in examination.findings]
        document["unread"] = list(examination.unread)
        screen.document(document)
    else:
        width = screen.console.width
        table = credentials(identities, now, width)
        if environment is not None:
            with_caption(table, plugins.describe(plugins.installed()))
        shown: list[Table | Text | str] = [table]
        if environment is not None and exchanges:
            shown.append(tokens(exchanges, Path(environment.mounts_dir), width))
        if managed.rows:
            shown.append(managed_identities_table(managed.rows, width))
        if any(condition.is_shown for condition in state.conditions):
            shown.append(conditions_table(state.conditions, width))
        if state.mounts:
            shown.append(mounts_table(state.mounts, width))
        unread = dict.fromkeys((*managed.unread, *state.unread, *examination.unread))
        for part in (*shown, *(f"not read: {why}" for why in unread), *findings(examination.results)):
            if part is not table:
                screen.console.print()
            screen.console.print(part)
    doctor = f"`.venv/bin/idstack doctor --stack {stack}`"
    failing = [
        row.identity
        for row in identities
        if (row.not_after is not None and row.not_after <= now) or (row.probes and not row.is_green)
    ]
    if failing:
        raise CommandError(f"these identities cannot sign in: {', '.join(failing)}. {doctor} finds the cause of each")
    if refused := [row.of.subject for row in exchanges if not row.probe.is_ready]:
        raise CommandError(f"these service accounts cannot sign in: {', '.join(refused)}. {doctor} finds the cause")
    if wrong := [f"{row.identity} of {row.cluster}" for row in managed.rows if row.is_wrong]:
        raise CommandError(
            f"these managed identities are missing in Azure or replaced: {', '.join(wrong)}; "
            f"`.venv/bin/idstack up --stack {stack} --refresh` creates them again"
        )
    if examination.findings:
        problem = "there are findings" if examination.is_complete else "the stack is not complete"
        raise CommandError(f"{problem}: {doctor} also checks the pods' sign-ins")
    if identities and not screen.as_json:
        line = f"the whole chain as a page: .venv/bin/idstack graph --stack {stack} --output graph.html"
        screen.console.print(f"\n{line}")
    return identities, (*managed.unread, *examination.unread_of_identities)


def brought_up(engine: Engine) -> StackOutputs[str]:
    """The outputs of a stack; raises CommandError if no `up` of it has completed."""
    outputs = engine.outputs()
    if not outputs:
        raise CommandError(
            f"no `up` of the stack {engine.stack} has completed, so there is nothing to show; its backend is "
            f"{engine.backend()}. `.venv/bin/idstack up --stack {engine.stack}` brings it up"
        )
    return outputs
