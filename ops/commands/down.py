"""`idstack down`: destroy a stack, and the local cloud with the last local one."""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import suppress

import typer

from identity import resource_types
from identity.aks.control_planes import control_planes, identities_in_use, refusal, unreadable
from identity.azure.errors import AccessError
from identity.azure.obstacles import locks
from identity.naming import control_plane_namespace
from identity.outputs import cluster_side
from ops.access.clients import api_server, deployer
from ops.commands.local import start_local_cloud
from ops.commands.options import RunOptions, Screen, inspector, with_options
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import local_paths, project_name
from ops.stack.errors import CommandError, message
from ops.world.stacks import Stacks, refuse_half_moves


@with_options
def down(context: typer.Context, *, run: RunOptions) -> None:
    """Destroy a stack, and the local cloud with its last stack. Other options go to `pulumi destroy`.

    Prompts for the name of a stack on Azure that was not named. Refuses while a namespace of the stack has a control
    plane of HyperShift, or other stacks share its vault. Warns of expired credentials, without which HyperShift cannot
    delete a hosted cluster.
    """
    engine, screen = run.opened()
    stack = run.stack
    others: list[str] = []
    if not engine.is_local:
        _require_named(context, stack)
        _destroy(engine, screen, context)
    elif local_paths().state.exists():
        start_local_cloud(screen)
        screen.step("pulumi destroy")
        engine.prepare()
        _destroy(engine, screen, context)
        engine.remove()
        others = [name for name in engine.stacks() if name != stack]
        if not others:
            screen.step("local cloud")
            local_cloud.do("stop", "--remove", output=screen.output)
    if run.as_json:
        screen.document({"stack": stack, "removed": engine.is_local})
    elif others:
        screen.console.print(f"the local cloud stays, because it still has other stacks: {', '.join(others)}")
    elif engine.is_local:
        screen.console.print("the local stack is removed completely")
    else:
        forget = f"`.venv/bin/idstack pulumi --stack {stack} -- stack rm --preserve-config`"
        screen.console.print(f"the stack keeps its history: once it is empty, {forget} removes that, too")


def _require_named(context: typer.Context, stack: str) -> None:
    """Ask for the name of a stack that was chosen without `--stack`, by a selection or a variable of earlier work."""
    source = context.get_parameter_source("stack")
    if source is not None and source.name == "COMMANDLINE":
        return
    if not sys.stdin.isatty():
        raise CommandError(f"nothing was destroyed: name the stack (`--stack {stack}`), which is not a local one")
    if typer.prompt(f"Destroy {stack}? Its name", err=True).strip() != stack:
        raise typer.Abort


def _destroy(engine: Engine, screen: Screen, context: typer.Context) -> None:
    """Destroy a stack; raises CommandError if something else needs it, or a lock forbids it."""
    _refuse_shared(engine)
    refuse_half_moves(engine)
    _require_no_control_plane(engine, screen, context)
    _refuse_locked(engine)
    if engine.is_local:
        local_cloud.play(engine.stack, (), output=screen.output)
    engine.destroy(context.args)


def _refuse_shared(engine: Engine) -> None:
    """Raise CommandError if other states have this stack as their shared one, whose vault they would lose."""
    reference = f"/{project_name(engine.root)}/{engine.stack}"
    stacks = Stacks.read(engine)
    users = [
        name
        for name, contents in stacks.others(engine.stack).items()
        if any(text.endswith(reference) and text.count("/") == 2 for text in contents.texts)
    ]
    unread = sorted(stacks.unread.keys() - stacks.contents.keys() - {engine.stack})
    if users:
        raise CommandError(f"nothing was destroyed: its vault serves {', '.join(users)}: destroy those first")
    if unread:
        raise CommandError(f"nothing was destroyed: {', '.join(unread)} may share its vault, and cannot be read")


def _refuse_locked(engine: Engine) -> None:
    """Raise CommandError if a lock keeps something in Azure: applications and secrets, which none keeps, would go."""
    made = [arm_id for one in engine.resources() if (arm_id := str(one.get("id"))).startswith("/subscriptions/")]
    if not made:
        return
    with suppress(AccessError), deployer(engine) as azure:
        if found := locks(azure, made):
            raise CommandError(message("down.locked", locks=", ".join(found), ids=" ".join(found)))


def _require_no_control_plane(engine: Engine, screen: Screen, context: typer.Context) -> None:
    """Raise CommandError if `destroy` would harm a control plane, or if that is unknown.

    It would delete a namespace with a control plane, or the identities of a hosted cluster that another tool applied.
    `destroy` does not run the program, which has its own check. Warns of credentials that no longer sign in, of the
    hosted clusters that HyperShift has to delete.
    """
    resources = engine.resources()
    outputs = engine.outputs()
    applied = [
        resource["inputs"]["metadata"]["name"]
        for resource in resources
        if resource["type"] == resource_types.HOSTED_CLUSTER_OBJECT
    ]
    # HyperShift owns a retained namespace now.
    deleted = [
        resource["inputs"]["metadata"]["name"]
        for resource in resources
        if resource["type"] == resource_types.NAMESPACE and not resource.get("retainOnDelete")
    ]
    # `destroy` deletes a HostedCluster in the state before the identities, with its control plane.
    served = [
        control_plane_namespace(cluster["namespace"], name)
        for name, cluster in (outputs.get("hostedClusters") or {}).items()
        if name not in applied and cluster_side(outputs, cluster) == "hypershift" and "managementClusterId" in outputs
    ]
    existing = _with_control_plane(engine, [*deleted, *served])
    if warning := inspector(context).ended_credentials(engine, sorted({*applied, *existing.values()})):
        screen.console.print(f"warning: {warning}")
    if losing := {namespace: existing[namespace] for namespace in deleted if namespace in existing}:
        raise CommandError(refusal(losing, engine.stack))
    if existing:
        raise CommandError(identities_in_use(existing))


def _with_control_plane(engine: Engine, namespaces: Collection[str]) -> dict[str, str]:
    """The hosted clusters with a control plane, by its namespace."""
    if not namespaces:
        return {}
    try:
        with api_server(engine) as server:
            return control_planes(server, namespaces)
    except (AccessError, CommandError) as error:
        why = unreadable(namespaces, error)
        raise CommandError(message("down.unreadable", why=why, stack=engine.stack)) from None
