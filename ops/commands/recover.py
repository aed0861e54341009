"""`idstack recover`: settle an interrupted stack and bring it up."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Final

import typer

from identity.azure.errors import AccessError
from ops.commands.local import prepare
from ops.commands.options import RunOptions, with_options
from ops.commands.up import up
from ops.outputs.tables import counted
from ops.recovery import settle
from ops.recovery.orphans import Orphan, settled
from ops.stack.errors import CommandError, message
from ops.stack.failures import NoSuchStackError
from ops.stack.state import resources_in
from ops.world.stacks import refuse_duplicates, refuse_moves

_AGREED: Final = frozenset({"--yes", "-y"})


@with_options
def recover(
    context: typer.Context,
    then_up: Annotated[bool, typer.Option("--up/--no-up", help="Run `up` afterwards.", show_default=True)] = True,
    unlock: Annotated[
        bool, typer.Option("--unlock", help="Remove the lock, if you are sure that its process has ended.")
    ] = False,
    owner: Annotated[
        str | None,
        typer.Option(help="Owner id of this stack before it lost its state or was destroyed, if you are sure of it."),
    ] = None,
    *,
    run: RunOptions,
) -> None:
    """Settle the interrupted operations of a killed or failed `up` or `destroy`, then run `up`.

    Other options go to `up`. Refuses while another process works on the stack.
    """
    engine, screen = run.opened()
    try:
        prepare(engine, screen, is_known=owner is None)
        if owner is not None:
            engine.create()
        screen.step("pulumi refresh")
        state = settle.unlock_and_refresh(engine, screen.console.print, owner_is_gone=unlock)
    except NoSuchStackError:
        with suppress(AccessError):
            settle.refuse_lost(engine, screen.console.print)
        raise
    refuse_moves(engine)
    refuse_duplicates(engine, engine.resources(), screen.console.print)
    if owner is not None:
        settle.take_owner_id(engine, owner)
    settle.refuse_lost(engine, screen.console.print)
    for line in settle.withdrawn_since(engine, resources_in(state)):
        screen.console.print(line)
    screen.step("resources that exist but are not in the state")
    orphans: list[Orphan] = []
    report = cache(screen.console.print)  # each line once, whatever the number of searches
    is_lost = owner is not None
    # A search finds what depends on an orphan or a provider once the state has that.
    while (found := settle.find_orphans(engine, report, is_lost=is_lost)) or (
        is_lost and settle.create_providers(engine, report)
    ):
        for orphan in found:
            screen.console.print(f"  {orphan.name}: {orphan.id}{', deleted' if orphan.is_deleted else ''}")
        if found and not engine.is_local:
            _confirm(engine.stack, found, agreed=bool(_AGREED & set(context.args)))
        settle.undelete(engine, found)
        engine.replace_state(settled(engine.state(), found))
        orphans += found
    screen.console.print(f"{len(orphans)} entered into the state" if orphans else "none")
    if then_up:
        up(context=context, run=run)
    elif run.as_json:
        screen.document({"stack": run.stack, "entered": {orphan.name: orphan.id for orphan in orphans}})


def _confirm(stack: str, orphans: Sequence[Orphan], *, agreed: bool) -> None:
    """Ask whether all of them are the stack's, because a later `destroy` deletes them.

    Raises CommandError without a terminal, and Abort for a no.
    """
    if agreed:
        return
    if not sys.stdin.isatty():
        raise CommandError(message("recover.unasked", count=counted(len(orphans), "resource"), stack=stack))
    typer.confirm("Are all of these the stack's own? A `destroy` will delete them", abort=True, err=True)
