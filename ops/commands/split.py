"""`idstack split`: move a hosted cluster from its stack to one of its own, without touching what is in Azure."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.commands.up import start_local_cloud
from ops.stack import splitting
from ops.stack.engine import Engine


def split(
    cluster: Annotated[str, typer.Option("--cluster", "-c", help="Name of the hosted cluster.")],
    to: Annotated[str, typer.Option("--to", help="Name of the stack that gets it; it is made if it does not exist.")],
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
) -> None:
    """Move a hosted cluster's part of the state to a stack of its own, which shares the vault of the first one.

    Both configurations are written before, and brought up afterwards (`docs/stacks.md`).
    """
    screen = Screen(as_json)
    source, target = (Engine(name, output=screen.output) for name in (stack, to))
    if source.is_local:
        start_local_cloud(screen)
        source.prepare()
    target.create()
    moved = splitting.move(source, target, cluster)
    screen.step("pulumi preview")
    changes = splitting.changes(target)
    if as_json:
        screen.document({"stack": stack, "to": to, "moved": moved, "changes": changes})
        return
    lines = [f"{cluster} is in {to} now, with {moved} resources; nothing has changed in Azure."]
    lines += [f"  {operation} {name}" for name, operation in changes.items()]
    lines.append(f"`make up STACK={to}` does the above, then `make up STACK={stack}` forgets the cluster.")
    screen.console.print("\n".join(lines), markup=False)
