"""Fixes that depend on who makes a thing: the stack, another tool or HyperShift."""

from __future__ import annotations

from identity.credentials.symptom import ON_PAPER, Symptom
from ops.world.expected import Identity
from ops.world.seen import known
from ops.world.stack_world import StackWorld


def renewal(world: StackWorld, identity: Identity) -> str:
    """The command, if the stack issues the identity's certificates; where to begin, if another tool does."""
    if identity.generation is None:
        return f"issue the credential again where it comes from, then {world.make('up')}"
    return world.command("rotate", "--identity", f"{identity.cluster}/{identity.identity}", "--force")


def of_cluster_side(world: StackWorld, what: str, ours: str) -> str:
    """What puts an object of the control plane's namespace right: `ours` if the stack makes it; `what` names it."""
    if known(world.state).cluster_side == "stack":
        return ours
    return f"look at the log of HyperShift's operators: HyperShift makes {what}"


def of_symptom(world: StackWorld, identity: Identity, symptom: Symptom) -> str:
    """The fix of a row of the table, for this identity. Raises NotReadError."""
    state = known(world.state)
    return symptom.fix.format(
        up=world.make("up"),
        repair=world.repair,
        objects=of_cluster_side(world, "it", world.repair),
        recover=world.make("recover"),
        renewal=renewal(world, identity),
        attach=f"`{state.attach_command}`" if state.attach_command else ON_PAPER["attach"],
        client=identity.client_id,
        secret=f"--vault-name {state.vault_name} --name {identity.secret}",
    )
