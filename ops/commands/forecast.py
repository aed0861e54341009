"""`idstack forecast`: how much of Azure's limits the stacks use, from their configuration alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from identity.secrets_store import duration
from ops.commands.options import DEFAULT_CHOICE, JsonOption, Screen, bare
from ops.forecast import screen
from ops.forecast.forecast import forecast as of_stacks
from ops.forecast.stack import read
from ops.stack.chosen_stack import chosen_stack
from ops.stack.errors import CommandError


def forecast(
    stack: Annotated[
        list[str],
        typer.Option(
            *("--stack", "-s"),
            help="Name of a stack; several count together.",
            show_default=DEFAULT_CHOICE,
            callback=bare,
        ),
    ] = [],  # noqa: B006 - typer copies it
    clusters: Annotated[
        int | None, typer.Option("--clusters", min=0, help="Count this many clusters like the stacks' own.")
    ] = None,
    poll_interval: Annotated[
        timedelta | None,
        typer.Option(
            "--poll-interval",
            metavar="TIME",
            parser=duration,
            help="Poll interval of the CSI driver on existing management clusters. Default: 2m, as in AKS.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show how much of Azure's limits the stacks use, and which limit is reached first as clusters are added.

    The usage is counted from the stacks' configuration files, without a sign-in. It does not include other owners in
    the same subscription and tenant. The exit code is 1 if a limit is exceeded.
    """
    names = list(dict.fromkeys(stack)) or [chosen_stack()[0]]
    result = of_stacks(read(names, poll_interval), clusters)
    output = Screen(as_json)
    if as_json:
        output.document({"stacks": names, **result.to_json()})
    else:
        output.console.print(screen.table(result, output.console.width))
        output.console.print(f"\n{screen.summary(result)}")
    over = [usage for usage in result.usages if usage.share > 1 and usage.limit.condition is None]
    if over:
        raise CommandError(
            f"over a limit of Azure: {'; '.join(f'{usage.limit.name} ({usage.holder})' for usage in over)}"
        )
