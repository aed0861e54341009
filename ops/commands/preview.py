"""`idstack preview`: show what `up` would change."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from ops.commands.options import (
    DEFAULT_STACK,
    JsonOption,
    PoliciesOption,
    ProvidersOption,
    Screen,
    StackOption,
    TimeLimitOption,
    own_options,
    policy_pack,
)
from ops.commands.up import start_local_cloud
from ops.forecast.preview import near_limits
from ops.siblings.infra_ids import refuse_duplicates
from ops.stack import plugins
from ops.stack.engine import Engine
from ops.stack.moved_clusters import refuse_moves
from ops.stack.passed_on import require_known
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
) -> None:
    """Show what `up` would change. Other options go to `pulumi preview`."""
    engine = Engine(stack, deadline=time_limit)
    require_known(engine, "preview", context.args, own_options(context))
    require_sound_configuration(engine)
    plugins.choose_for(stack, providers)
    if engine.is_local:
        start_local_cloud(Screen(as_json))
        engine.prepare()
    refuse_moves(engine)
    refuse_duplicates(engine, engine.resources_if_any(), Screen(as_json=True).console.print)
    engine.preview([*(["--json"] if as_json else []), *policy_pack(stack, wanted=policies), *context.args], hold=hold)
    if near := near_limits(stack):
        Screen(as_json=True).console.print(near, markup=False)
