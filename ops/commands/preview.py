"""`idstack preview`: show what `up` would change."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from ops.commands.local import prepare
from ops.commands.options import PoliciesOption, ProvidersOption, RunOptions, Screen, with_options
from ops.outputs import plan
from ops.outputs.tables import titled
from ops.stack import plugins
from ops.stack.engine import Engine
from ops.stack.environment import policy_pack
from ops.stack.errors import writing
from ops.stack.settings import require_sound_configuration
from ops.world.stacks import refuse_duplicates, refuse_moves


@with_options
def preview(
    context: typer.Context,
    hold: Annotated[bool, typer.Option("--hold", help="Keep every certificate, even if it is due.")] = False,
    *,
    run: RunOptions,
    providers: ProvidersOption = None,
    policies: PoliciesOption = False,
    markdown: Annotated[Path | None, typer.Option(help="Also write the table into this file, as Markdown.")] = None,
) -> None:
    """Show what `up` would change, with a table by identity at the end. Other options go to `pulumi preview`.

    `--suppress-outputs=false` shows the stack's outputs, too, as `--refresh` does.
    """
    # With --json the engine's document is the command's.
    engine, screen = Engine(run.stack, deadline=run.time_limit), Screen(run.as_json)
    require_sound_configuration(engine)
    plugins.choose(run.stack, providers)
    prepare(engine, screen)
    refuse_moves(engine)
    resources = engine.resources_if_any()
    refuse_duplicates(engine, resources, Screen(as_json=True).console.print)
    # What a refresh has found is shown as outputs.
    refreshes = any(word.partition("=")[0] in {"-r", "--refresh"} for word in context.args)
    form = ["--json"] if run.as_json else [] if refreshes else ["--suppress-outputs"]
    with TemporaryDirectory() as folder:
        events = Path(folder) / "events"
        try:
            engine.preview([*form, *policy_pack(run.stack, wanted=policies), *context.args], hold=hold, events=events)
        finally:
            lines = events.read_text(encoding="utf-8").splitlines() if events.exists() else []
            _show(plan.read(lines, run.stack), screen, markdown)


def _show(log: plan.RunLog, screen: Screen, markdown: Path | None) -> None:
    """Print and write the tables of a preview, also of a failed one; raises CommandError."""
    console = screen.console
    for title, rows, note in () if screen.as_json else plan.sections(log.steps):
        if rows:
            console.print(titled(title, rows, note))
    if markdown is not None:
        with writing("the table"):
            markdown.write_text(plan.markdown(log), encoding="utf-8")
