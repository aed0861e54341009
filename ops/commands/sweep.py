"""`idstack sweep`: what is left over in Azure, why it is thought so, and on request its deletion."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
import yaml
from rich.box import HEAVY_HEAD
from rich.table import Table
from rich.text import Text

from ops.access.azure import deployer
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import settings_of
from ops.sweep.left_over import delete, find
from ops.sweep.model import LeftOver
from ops.world.stacks import Stacks


def sweep(
    yes: Annotated[bool, typer.Option("--yes", help="Delete what is listed as ours.")] = False,
    infra_id: Annotated[
        list[str] | None,
        typer.Option(
            "--infra-id", help="Infrastructure id of a hosted cluster that no stack has any more; repeatable."
        ),
    ] = None,
    as_json: JsonOption = False,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """List what is left over where the stack's configuration leads: role assignments whose principal is gone, and
    applications, secrets and managed identities that carry our tags and belong to no stack, and credentials of the
    stacks' applications, service principals and managed identities that no stack has: certificates of a lost state, and
    foreign ones. Storage accounts of OIDC issuers that no stack has are listed, and what HyperShift
    left of hosted clusters: machines, disks and load balancers. None of these is deleted here.

    Nothing that any stack of the backend names is listed. `--yes` deletes what is ours; it refuses while a stack cannot
    be read. Deleted secrets and applications can be recovered for some time.
    """
    screen, engine = Screen(as_json), Engine(stack)
    settings, stacks = settings_of(engine), Stacks.read(engine)
    if yes and stacks.unreadable:
        raise CommandError(
            "nothing was deleted, as these stacks may name what would be: "
            + "; ".join(f"{name} ({why})" for name, why in stacks.unreadable.items())
        )
    project = yaml.safe_load((engine.root / "Pulumi.yaml").read_text(encoding="utf-8"))["name"]
    configuration = {"cloud": settings.cloud.name, "tenantId": settings.tenant_id}
    with deployer(stack, configuration, local_cloud.of(stack)) as azure:
        found = find(azure, settings, project, _vault(engine, stacks), stacks, infra_id or (), datetime.now(UTC))
        ours, deleted = [each for each in found if each.is_deleted], list[str]()
        if not as_json:
            _show(found, stacks, screen)
        try:
            for each in ours if yes else ():
                delete(azure, each)
                deleted.append(each.id)
                screen.console.print(f"deleted the {each.kind} {each.name}", markup=False, emoji=False)
        finally:
            if as_json:
                listed = [{**each.to_json(), "deleted": each.id in deleted} for each in found]
                screen.document({"stack": stack, "leftOver": listed, "unreadable": dict(stacks.unreadable)})
        if ours and not yes and not as_json:
            screen.console.print(f"nothing was deleted; `idstack sweep --stack {stack} --yes` deletes what is ours")


def _vault(engine: Engine, stacks: Stacks) -> str | None:
    if engine.stack in stacks.unreadable:
        return None
    return engine.outputs().get("keyVaultId")


def _show(found: Sequence[LeftOver], stacks: Stacks, screen: Screen) -> None:
    for name, why in stacks.unreadable.items():
        screen.console.print(f"not read, so what it names may be listed: {name} ({why})", markup=False)
    if not found:
        screen.console.print("nothing is left over")
        return
    table = Table("what", "name", "why it is thought to be left over", "ours", box=HEAVY_HEAD)
    for each in found:
        # Plain: a tag such as `idstack:x:hc1` has the form of an emoji's name.
        table.add_row(*map(Text, (each.kind, each.name, each.reason, _ours(each))))
    screen.console.print(table)


def _ours(found: LeftOver) -> str:
    if found.not_ours is not None:
        return f"no: {found.not_ours}"
    return "yes" if found.too_soon is None else f"yes; {found.too_soon}"
