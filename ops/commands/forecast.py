"""`idstack forecast`: what the stacks take of Azure's limits, from their configuration alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from ops.commands.options import DEFAULT_CHOICE, JsonOption, Screen
from ops.forecast import screen
from ops.forecast.forecast import forecast as make_forecast
from ops.forecast.stack import duration, read
from ops.stack.chosen_stack import chosen_stack
from ops.stack.errors import CommandError


def forecast(
    stack: Annotated[
        list[str],
        typer.Option("--stack", "-s", help="Name of a stack; several count together.", show_default=DEFAULT_CHOICE),
    ] = [],  # noqa: B006 - typer copies it
    clusters: Annotated[
        int | None, typer.Option("--clusters", min=0, help="As if there were so many clusters like the stacks' own.")
    ] = None,
    poll_interval: Annotated[
        timedelta | None,
        typer.Option(
            "--poll-interval",
            metavar="TIME",
            parser=duration,
            help="Poll interval of the CSI driver on management clusters that exist already. Default: 2m, as AKS has.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what stacks take of each of Azure's limits, and which one is met first as clusters are added.

    Everything is counted from the stacks' configuration files, without a sign-in. Other owners of the same
    subscription and tenant count as well, but not here. The exit code is 1 if a limit is exceeded.
    """
    names = list(dict.fromkeys(stack)) or [chosen_stack()[0]]
    found = make_forecast(read(names, poll_interval), clusters)
    output = Screen(as_json)
    if as_json:
        output.document({"stacks": names, **found.to_json()})
    else:
        output.console.print(screen.table(found, output.console.width))
        output.console.print(f"\n{screen.summary(found)}", markup=False)
    over = [use for use in found.uses if use.share > 1 and use.limit.condition is None]
    if over:
        raise CommandError(f"over a limit of Azure: {'; '.join(f'{use.limit.name} ({use.holder})' for use in over)}")
