"""`idstack preview`: show what `up` would change."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, TypeAlias

import typer

from ops.commands.local_start import prepare
from ops.commands.options import (
    DEFAULT_STACK,
    JsonOption,
    PoliciesOption,
    ProvidersOption,
    Screen,
    StackOption,
    TimeLimitOption,
)
from ops.guards.infra_ids import refuse_duplicates
from ops.outputs import plan
from ops.stack import plugins
from ops.stack.engine import Engine
from ops.stack.environment import policy_pack
from ops.stack.errors import writing
from ops.stack.moved_clusters import refuse_moves
from ops.stack.settings import require_sound_configuration

HoldOption: TypeAlias = Annotated[bool, typer.Option("--hold", help="Keep every certificate, even if it is due.")]


def preview(
    context: typer.Context,
    hold: HoldOption = False,
    stack: StackOption = DEFAULT_STACK,
    time_limit: TimeLimitOption = None,
    as_json: JsonOption = False,
    providers: ProvidersOption = None,
    policies: PoliciesOption = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Also write a table by identity into this file, as Markdown.")
    ] = None,
) -> None:
    """Show what `up` would change. Other options go to `pulumi preview`."""
    engine = Engine(stack, deadline=time_limit)
    require_sound_configuration(engine)
    plugins.choose_for(stack, providers)
    prepare(engine, Screen(as_json))
    refuse_moves(engine)
    resources = engine.resources_if_any()
    refuse_duplicates(engine, resources, Screen(as_json=True).console.print)
    arguments = [*(["--json"] if as_json else []), *policy_pack(stack, wanted=policies), *context.args]
    if markdown is None:
        engine.preview(arguments, hold=hold)
    else:
        with TemporaryDirectory() as folder:
            events = Path(folder) / "events"
            try:
                engine.preview(arguments, hold=hold, events=events)
            finally:
                _write_table(engine, events, markdown)


def _write_table(engine: Engine, events: Path, file: Path) -> None:
    """Write the table of a preview, also of a failed one; raises CommandError."""
    lines = events.read_text(encoding="utf-8").splitlines() if events.exists() else []
    table = plan.markdown(plan.read(lines, engine.stack))
    with writing("the table"):
        file.write_text(table, encoding="utf-8")
