"""`idstack renew`: renew the certificates that are due, without other changes of configuration or program."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

import typer

from ops.commands.local_start import prepare
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption, TimeLimitOption, inspector
from ops.outputs.rows import rows
from ops.renewal.guard import renewable
from ops.renewal.run import RenewalRun
from ops.stack import brought_up
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.moved_clusters import refuse_half_moves
from ops.stack.settings import require_sound_configuration


def renew(
    context: typer.Context,
    stack: StackOption = DEFAULT_STACK,
    time_limit: TimeLimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Renew the certificates that are due, and change nothing else. Other options go to `pulumi up`.

    It runs the commit that was last deployed, not the checkout.
    """
    screen = Screen(as_json)
    engine = Engine(stack, output=screen.output, deadline=time_limit)
    prepare_renewal(context, engine, screen)
    identities = renewable(engine.resources())
    clusters = engine.outputs().get("hostedClusters", {}).values()
    if clusters and not any(cluster["controlPlane"] for cluster in clusters):
        screen.console.print(f"no identity of the stack {stack} has a certificate: nothing expires")
        inspector(context).show_status(engine, screen)
        return
    if not identities:
        raise CommandError(
            f"the stack {stack} has no certificate to renew: `.venv/bin/idstack up --stack {stack}` issues the first"
        )
    outcome = RenewalRun(engine, screen.console, {}, context.args).renew(identities)
    inspector(context).show_status(engine, screen)
    if overdue := _due(engine, outcome.left_out):
        raise CommandError(f"a renewal is due and was left out: {', '.join(overdue)}; the reasons are printed above")
    if outcome.failed:
        raise CommandError(
            f"a renewal of {', '.join(outcome.failed)} would fail, due or not; the reasons are printed above"
        )


def prepare_renewal(context: typer.Context, engine: Engine, screen: Screen) -> None:
    """Prepare a run that only renews, or exit with the code of this command at the commit that was last brought up.

    Raises CommandError for an unsound configuration and an interrupted move.
    """
    prepare(engine, screen)
    if (code := brought_up.run_instead(engine, engine.outputs().get("commit"), screen.console)) is not None:
        raise typer.Exit(code)
    require_sound_configuration(engine)
    refuse_half_moves(engine)


def _due(engine: Engine, names: Collection[str]) -> list[str]:
    now = datetime.now(UTC)
    return [
        name
        for row in rows(engine.outputs(), None)
        if (name := f"{row.cluster}/{row.identity}") in names and row.renew_after is not None and row.renew_after <= now
    ]
