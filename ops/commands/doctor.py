"""`idstack doctor`: why something does not work; so far for the access to the management cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from identity.access.api_server import AccessRequirements
from identity.access.errors import AccessError
from identity.access.permissions import KINDS, permissions
from ops.access.management_cluster import stack_access
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.stack.engine import Engine
from ops.stack.environment import variables
from ops.stack.errors import CommandError


class Stage(StrEnum):
    """What can be checked."""

    ACCESS = "access"


def doctor(
    stage: Annotated[Stage, typer.Option(help="What to check.")] = Stage.ACCESS,
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
) -> None:
    """Sign in to the management cluster as the stack does, and list the permissions and kinds that are missing."""
    screen = Screen(as_json)
    try:
        with stack_access(Engine(stack)).api_server(variables(stack)) as server:
            server.check_sign_in()
            missing = server.missing(AccessRequirements(permissions(), KINDS))
    except AccessError as error:
        raise CommandError(str(error)) from None
    if as_json:
        screen.document({"stack": stack, "stage": stage, "server": server.server, "missing": missing})
    else:
        screen.console.print(f"signed in to {server.server} as {server.who}")
    if missing:
        raise CommandError(f"{stage}: {'; '.join(missing)}. {server.hint}")
    if not as_json:
        screen.console.print("every permission and kind that the stack needs is there")
