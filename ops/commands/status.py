"""`idstack status`: each identity's secret, certificate and renewal; locally also whether it signs in now."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ops.access.cluster_state import read_cluster_state
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.outputs import cluster_tables, probes
from ops.outputs.cluster_state import ClusterState
from ops.outputs.rows import has_probes, rows
from ops.outputs.tables import credentials, with_caption
from ops.stack import local_cloud, plugins
from ops.stack.engine import Engine
from ops.stack.errors import CommandError


def status(stack: StackOption = DEFAULT_STACK, as_json: JsonOption = False) -> None:
    """Show each identity: secret, SecretProviderClass, expiry, renewal; locally also its sign-in and proof call.

    Then what the management cluster reports: the HostedClusters' conditions, and which version each pod has mounted.
    """
    show(stack, Screen(as_json))


def show(stack: str, screen: Screen) -> None:
    """Print the rows of a stack.

    Raises CommandError for a stack that does not exist, for an expired certificate and, locally, for a row that is not
    green.
    """
    engine = Engine(stack, output=screen.output)
    environment = local_cloud.of(stack)
    outputs = engine.outputs()
    try:
        answers = probes.read(Path(environment.kubeconfig)) if environment and has_probes(outputs) else None
    except probes.Unreachable as error:
        raise CommandError(f"{error}; `make up` starts the local cloud again") from None
    found, now = rows(outputs, answers), datetime.now(UTC)
    state = read_cluster_state(engine, outputs)
    if screen.as_json:
        rendered: dict[str, Any] = {} if state is None else {"managementCluster": state.to_json()}
        if environment is not None:
            rendered["providers"] = {each.name: each.kind for each in plugins.installed()}
        screen.document({"stack": stack, "rows": [row.to_json(now) for row in found], **rendered})
    else:
        table = credentials(found, now, screen.console.width)
        if environment is not None:
            with_caption(table, plugins.describe(plugins.installed()))
        screen.console.print(table)
        if state is not None:
            _show_cluster(state, screen)
    failing = [
        row.identity
        for row in found
        if (row.not_after is not None and row.not_after <= now) or (answers is not None and not row.is_green)
    ]
    if failing:
        raise CommandError(f"these identities cannot sign in: {', '.join(failing)}")


def _show_cluster(state: ClusterState, screen: Screen) -> None:
    """Print a table for each kind of report, and a line for each that could not be read."""
    console = screen.console
    if any(each.is_shown for each in state.conditions):
        console.print("\n", cluster_tables.conditions(state.conditions, console.width), sep="")
    if state.mounts:
        console.print("\n", cluster_tables.mounts(state.mounts, console.width), sep="")
    for each in state.unread:
        console.print(f"\nnot read: {each}", markup=False)
