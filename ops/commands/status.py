"""`idstack status`: each identity's secret, certificate and renewal; locally also whether it signs in now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from rich.console import Console, RenderableType

from identity.clouds import LocalEnvironment
from ops.commands.options import (
    DEFAULT_STACK,
    ClusterOption,
    IdentityOption,
    JsonOption,
    Screen,
    StackOption,
    selected,
)
from ops.doctor.examination import NotSignedInError, Status, UnreadError, brought_up, read_status
from ops.doctor.report import findings
from ops.outputs.rows import RenewalOverdueError, rows
from ops.outputs.tables import (
    conditions_table,
    credentials,
    managed_identities_table,
    mounts_table,
    tokens,
)
from ops.stack import local_cloud, plugins
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, WrongUsageError, message
from ops.stack.stack_document import replace_file
from ops.world.cluster_state import by_identity
from ops.world.reader import EVERYTHING, Selection


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
    shown = show(Engine(stack, output=screen.output), screen, metrics, selection)
    if overdue := [f"{row.identity} of {row.cluster}" for row in shown.rows if row.is_overdue(now)]:
        raise RenewalOverdueError(message("status.overdue", names=", ".join(overdue), stack=stack), now)
    # Some backends never show their locks.
    if unread := (*shown.managed.unread, *shown.unchecked(lambda result: result.identity)):
        raise UnreadError(unread, are_shown=True)


def show(engine: Engine, screen: Screen, metrics: Path | None = None, selection: Selection = EVERYTHING) -> Status:
    """Print the selected rows of a stack, write them to a file of metrics if one is named; returns what was read.

    Raises CommandError for a stack that does not exist or was never brought up, an expired certificate, a missing
    managed identity, findings of the doctor in Azure, metrics that cannot be written and, locally, a failed sign-in.
    The metrics of a stack that is not complete are not written.
    """
    try:
        status = read_status(engine, selection)
    except NotSignedInError:
        if not screen.as_json:
            delivered = selection.of_rows(rows(brought_up(engine), None))
            caption = "as the last run delivered them: nothing was read in Azure"
            screen.console.print(credentials(delivered, datetime.now(UTC), caption))
        raise
    if status.unreachable is not None:
        raise status.unreachable
    if metrics is not None and status.is_complete:
        write_metrics(metrics, render_metrics(status))
    environment = local_cloud.of(status.stack)
    if screen.as_json:
        screen.document(_document(status, is_local=environment is not None))
    else:
        _print(status, environment, screen.console)
    status.require_sound()
    if status.rows and not screen.as_json:
        line = f"the whole chain as a page: .venv/bin/idstack graph --stack {status.stack} --output graph.html"
        screen.console.print(f"\n{line}")
    return status


def _document(status: Status, *, is_local: bool) -> dict[str, Any]:
    """The document of `--json` (docs/reference/json.md)."""
    return {
        "stack": status.stack,
        "rows": [row.to_json(status.at) for row in status.rows],
        "managedIdentities": status.managed.to_json(),
        **({"managementCluster": status.cluster.to_json()} if status.cluster is not None else {}),
        **({"serviceAccounts": [row.to_json() for row in status.accounts]} if status.accounts else {}),
        **({"providers": {plugin.name: plugin.kind for plugin in plugins.installed()}} if is_local else {}),
        "findings": [finding.to_json() for finding in status.findings],
        "unread": list(status.unchecked()),
    }


def _print(status: Status, environment: LocalEnvironment | None, console: Console) -> None:
    caption = "" if environment is None else plugins.describe(plugins.installed())
    shown: list[RenderableType] = [credentials(status.rows, status.at, caption)]
    if status.accounts:
        shown.append(tokens(status.accounts))
    if status.managed.rows:
        shown.append(managed_identities_table(status.managed.rows))
    if any(condition.is_shown for condition in status.cluster_state.conditions):
        shown.append(conditions_table(status.cluster_state.conditions))
    if status.cluster_state.mounts:
        shown.append(mounts_table(status.cluster_state.mounts))
    if status.unread:
        shown.append("\n".join(f"not read: {why}" for why in status.unread))
    for number, part in enumerate([*shown, *findings(status.results)]):
        if number:
            console.print()
        console.print(part)


_SUFFIX: Final = ".prom"
_READABLE: Final = 0o644  # node_exporter runs as another user


def render_metrics(status: Status) -> bytes:
    """The metrics of a stack in Prometheus' text format; an identity without a date has none.

    Whether something is broken is the doctor's result for an identity of a hosted cluster, or for the whole stack;
    unknown results have no metric.
    """
    stack, now, is_broken = status.stack, status.at, status.is_broken
    registry = CollectorRegistry()

    def gauge(name: str, meaning: str, labels: Sequence[str] = ("stack", "cluster", "identity")) -> Gauge:
        return Gauge(f"idstack_status_{name}", meaning, labels, registry=registry)

    gauge("run_seconds", "When idstack status wrote this", ("stack",)).labels(stack).set(now.timestamp())
    expires = gauge("not_after_seconds", "When the certificate expires")
    renews = gauge("renew_after_seconds", "When a renewal becomes due")
    overdue = gauge("renewal_overdue", "1 if the renewal should have happened, else 0")
    signs_in = gauge("signs_in", "1 if each mount signs in and makes its proof call, else 0; only where probes answer")
    wrong = gauge("managed_identity_wrong", "1 if Azure does not have it as the stack created it, else 0")
    old = gauge("mount_is_old", "1 if a pod has mounted another version than the vault's, else 0")
    broken = gauge("broken", "1 if idstack doctor finds its secret, application or roles broken, else 0")
    stack_broken = gauge(
        "stack_broken", "1 if the vault, or the role of the key-vault-user, is broken, else 0", ("stack",)
    )
    if (is_found_broken := is_broken(None, None)) is not None:
        stack_broken.labels(stack).set(is_found_broken)
    for row in status.rows:
        where = (stack, row.cluster, row.identity)
        if (is_found_broken := is_broken(row.cluster, row.identity)) is not None:
            broken.labels(*where).set(is_found_broken)
        overdue.labels(*where).set(row.is_overdue(now))
        if row.not_after is not None:
            expires.labels(*where).set(row.not_after.timestamp())
        if row.renew_after is not None:
            renews.labels(*where).set(row.renew_after.timestamp())
        if row.probes:
            signs_in.labels(*where).set(row.is_green)
    for managed_identity in status.managed.rows:
        wrong.labels(stack, managed_identity.cluster, managed_identity.identity).set(managed_identity.is_wrong)
    for (cluster, identity), versions in by_identity(status.cluster_state.mounts).items():
        states = {version.state for version in versions}
        if states & {"current", "old"}:
            old.labels(stack, cluster, identity).set("old" in states)
    return generate_latest(registry)


def write_metrics(file: Path, metrics: bytes) -> None:
    """Write the metrics to a file atomically; raises CommandError if that fails."""
    if file.suffix != _SUFFIX:
        raise WrongUsageError(f"--metrics {file}: node_exporter reads only files with the suffix {_SUFFIX}")
    try:
        replace_file(file, metrics.decode(), mode=_READABLE)
    except OSError as error:
        raise CommandError(message("status.unwritten", file=file, why=error.strerror or error)) from None
