"""`idstack sweep`: leftover resources in Azure, why they are thought so, and on request their deletion."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from identity.azure.client import AzureClient
from ops.access.clients import deployer
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.outputs.tables import titled
from ops.stack.engine import Engine
from ops.stack.environment import project_name
from ops.stack.errors import CommandError, message
from ops.stack.settings import settings_of
from ops.sweep.left_over import LeftOver, delete, find
from ops.world.reader import read_locks
from ops.world.seen import Unread
from ops.world.stacks import Stacks


def sweep(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete the resources that idstack owns.")] = False,
    infra_id: Annotated[
        list[str] | None,
        typer.Option(help="Infrastructure id of a hosted cluster that no stack has any more; repeatable."),
    ] = None,
    no_run: Annotated[
        bool,
        typer.Option("--no-run", help="Go on where locks cannot be read, if you are sure that no stack runs."),
    ] = False,
    as_json: JsonOption = False,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """List leftover resources in the scope of the stack's configuration: role assignments of deleted principals,
    applications, secrets and managed identities with idstack's tags that belong to no stack, and credentials of the
    stacks' applications, service principals and managed identities that no stack has. Storage accounts of OIDC issuers
    without a stack are only listed, as is what HyperShift left of hosted clusters: machines, disks and load balancers.

    Resources of any stack in the backend are left out. `--yes` deletes the resources that idstack owns, and looks again
    before each one. It refuses while a stack is locked, and if a stack cannot be read; without --no-run also if locks
    cannot be read, as those in s3://, gs:// and Pulumi Cloud. Deleted secrets and applications can be recovered for
    some time.
    """
    screen, engine = Screen(as_json), Engine(stack)
    settings, stacks = settings_of(engine), Stacks.read(engine)
    if yes and stacks.unread:
        unread = "; ".join(f"{name} ({why})" for name, why in stacks.unread.items())
        raise CommandError(message("sweep.unread", stacks=unread))
    project = project_name(engine.root)
    vault = None if engine.stack in stacks.unread else engine.outputs().get("keyVaultId")
    with deployer(engine) as azure:

        def search() -> list[LeftOver]:
            return find(azure, settings, project, vault, stacks, infra_id or (), datetime.now(UTC))

        left_overs = search()
        own, deleted = [left_over for left_over in left_overs if left_over.is_deleted], list[str]()
        if not as_json:
            _show(left_overs, stacks, screen)
        try:
            for left_over in own if yes else ():
                is_left = left_over in search()
                # Last, for a run may have begun during the search.
                _require_no_run(engine, azure, stacks, is_sure=no_run)
                if not is_left:
                    screen.console.print(f"left alone, because it has changed: the {left_over.kind} {left_over.name}")
                    continue
                delete(azure, left_over)
                deleted.append(left_over.id)
                screen.console.print(f"deleted the {left_over.kind} {left_over.name}")
        finally:
            if as_json:
                listed = [{**left_over.to_json(), "deleted": left_over.id in deleted} for left_over in left_overs]
                screen.document({"stack": stack, "leftovers": listed, "unread": dict(stacks.unread)})
        if own and not yes and not as_json:
            screen.console.print(message("sweep.not-asked", stack=stack))


def _require_no_run(engine: Engine, azure: AzureClient, stacks: Stacks, *, is_sure: bool) -> None:
    """Raise CommandError if a run may be making what the states do not have, in any stack of the backend.

    `is_sure`: a person says that none does, where locks cannot be read.
    """
    locks = {
        name: read_locks(replace(engine, stack=name, beside=engine.stack), lambda: nullcontext(azure))
        for name in stacks.last_writes
    }
    changed = sorted(name for name, _ in engine.last_writes().items() ^ stacks.last_writes.items())
    unread = [] if is_sure else [f"{name} ({held.why})" for name, held in locks.items() if isinstance(held, Unread)]
    for why, names, remedy in (
        ("a run has locked", [name for name, held in locks.items() if held and not isinstance(held, Unread)], ""),
        ("a run may have locked", unread, ", or with --no-run if you are sure that there is none"),
        ("since the states were read, a run has changed", list(dict.fromkeys(changed)), ""),
    ):
        if names:
            raise CommandError(message("sweep.in-use", why=why, names=", ".join(names), remedy=remedy))


def _show(left_overs: Sequence[LeftOver], stacks: Stacks, screen: Screen) -> None:
    for name, why in stacks.unread.items():
        screen.console.print(f"not read, so that its resources may be listed: {name} ({why})")
    lines = [
        {"what": found.kind, "name": found.name, "reason": found.reason, "owned by idstack": _ours(found)}
        for found in left_overs
    ]
    screen.console.print(titled("leftovers", lines, ""))


def _ours(left_over: LeftOver) -> str:
    if left_over.not_ours is not None:
        return f"no: {left_over.not_ours}"
    return "yes" if left_over.too_soon is None else f"yes; {left_over.too_soon}"
