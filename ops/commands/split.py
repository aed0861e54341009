"""`idstack split`: move a hosted cluster from its stack to one of its own, without changes in Azure."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.commands import completions
from ops.commands.local_start import prepare
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption, bare_name
from ops.stack import splitting
from ops.stack.engine import Engine


def split(
    cluster: Annotated[
        str, typer.Option(*("--cluster", "-c"), help="Name of the hosted cluster.", autocompletion=completions.clusters)
    ],
    to: Annotated[
        str, typer.Option("--to", help="Name of the target stack, created if it does not exist.", callback=bare_name)
    ],
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
) -> None:
    """Move a hosted cluster's part of the state to a stack of its own, which shares the vault of the first one.

    A second run finishes an interrupted move. Write both configurations before, and deploy both stacks afterwards
    (`docs/guides/stacks.md`).
    """
    screen = Screen(as_json)
    source, target = (Engine(name, output=screen.output) for name in (stack, to))
    prepare(source, screen)
    target.create()
    moved = splitting.move(source, target, cluster)
    screen.step("pulumi preview")
    changes = splitting.changes(target)
    if as_json:
        screen.document({"stack": stack, "to": to, "moved": moved.resources, "changes": changes})
        return
    lines = [_summary(cluster, stack, to, moved)]
    lines += [f"  {operation} {name}" for name, operation in changes.items()]
    lines.append(f"`make up STACK={to}` makes these changes, then `make up STACK={stack}` forgets the cluster.")
    screen.console.print("\n".join(lines))


def _summary(cluster: str, stack: str, to: str, moved: splitting.Moved) -> str:
    if not moved.was_begun:
        return f"{cluster} is in {to} now, with {moved.resources} resources; nothing has changed in Azure."
    if not moved.resources:
        return f"{cluster} was moved before: it is in {to}, and no longer in {stack}."
    return (
        f"{cluster} was in the states of both stacks, with equal ids: its interrupted move is finished now. "
        f"{moved.resources} resources left the state of {stack}; nothing has changed in Azure."
    )
