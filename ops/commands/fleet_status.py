"""`idstack fleet status`: all stacks of a fleet in one table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rich.text import Text

from ops.commands.fleet_options import DEFAULT, EnvironmentOption, FileOption, chosen
from ops.commands.options import JsonOption, Screen
from ops.commands.status import RenewalOverdueError, judged_by
from ops.fleet.overview import StackStatus, read
from ops.outputs.tables import Line, fitted
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError

_COMMIT: Final = 10  # characters
# The table on narrow screens.
_STACKED: Final = (
    (
        ("stack", "environment", "wave"),
        ("last run", "commit"),
        ("nearest expiry", "overdue renewals", "failed sign-in"),
    ),
)


def status(file: FileOption = DEFAULT, name: EnvironmentOption = None, as_json: JsonOption = False) -> None:
    """Show each stack: wave, last run and its commit, nearest expiry, overdue renewals, the last failed sign-in.

    Exits with 1 if a stack is not deployed, a certificate has expired or a sign-in fails, and with 3 if all is
    well but a renewal is overdue by two days, as `idstack status` does.
    """
    screen = Screen(as_json)
    statuses = [stack for environment in chosen(file, name) for stack in read(environment, ROOT, screen.output)]
    if as_json:
        screen.document({"stacks": [stack.to_json() for stack in statuses]})
    else:
        screen.console.print(fitted([_line(stack) for stack in statuses], _STACKED, screen.console.width))
    if unhealthy := [stack.stack.name for stack in statuses if not stack.is_healthy]:
        raise CommandError(f"these stacks are not up, or a sign-in in them fails: {', '.join(unhealthy)}")
    if overdue := [stack.stack.name for stack in statuses if stack.overdue]:
        raise RenewalOverdueError(
            f"renewals are overdue in these stacks: {', '.join(overdue)}. `make renew STACK=<name>` renews what the "
            f"stack issues, and says what stopped it. {judged_by(datetime.now(UTC))}"
        )


def _line(stack: StackStatus) -> Line:
    failed = stack.last_failed
    if stack.is_up:
        last = Text(f"{stack.updated:%Y-%m-%d %H:%M}" if stack.updated else "not known")
    else:
        last = Text("not up", "bold red")
    if failed is not None:
        last = Text(f"failed {failed.at:%Y-%m-%d %H:%M}", "bold red")
    expiry = Text(f"{stack.expires:%Y-%m-%d}" if stack.expires else "")
    if stack.expired:
        expiry.stylize("bold red")
    return {
        "stack": Text(stack.stack.name),
        "environment": Text(stack.stack.environment),
        "wave": Text(stack.wave),
        "last run": last,
        "commit": Text((stack.commit or "")[:_COMMIT]),
        "nearest expiry": expiry,
        "overdue renewals": Text(", ".join(stack.overdue), "yellow"),
        "failed sign-in": Text(str(stack.failure) if stack.failure else "", "bold red"),
    }
