"""`idstack fleet`: commands for all stacks of a fleet file."""

from __future__ import annotations

import typer

from ops.commands.fleet_status import status
from ops.commands.fleet_up import up

fleet = typer.Typer(name="fleet", help="Bring up and watch the stacks of a fleet file.", no_args_is_help=True)


@fleet.callback()
def _several() -> None:
    """Keep the names of the commands: typer leaves out the name of an only command."""


fleet.command("up")(up)
fleet.command("status")(status)
