"""Fixes that depend on the creator of an object: the stack, another tool or HyperShift."""

from __future__ import annotations

from identity.credentials.symptom import ON_PAPER, Symptom
from ops.world.expected import Identity
from ops.world.seen import known
from ops.world.stack_world import StackWorld


def renewal(world: StackWorld, identity: Identity) -> str:
    """The command, if the stack issues the identity's certificates; otherwise the steps with the other tool."""
    if identity.generation is None:
        return f"issue the credential again with the tool that issued it, then {world.command('up')}"
    return world.command("rotate", "--identity", f"{identity.cluster}/{identity.identity}", "--force")


def of_cluster_side(world: StackWorld, name: str, ours: str) -> str:
    """The fix of an object in the control plane's namespace: `ours` if the stack creates it."""
    if known(world.state).cluster_side == "stack":
        return ours
    return f"check the log of HyperShift's operators: HyperShift creates {name}"


def of_symptom(world: StackWorld, identity: Identity, symptom: Symptom) -> str:
    """The fix of a symptom, for this identity. Raises NotReadError."""
    state = known(world.state)
    return symptom.fix.format(
        up=world.command("up"),
        repair=world.repair,
        objects=of_cluster_side(world, "it", world.repair),
        recover=world.command("recover"),
        renewal=renewal(world, identity),
        rotate=world.command("rotate", "--identity", f"{identity.cluster}/{identity.identity}").strip("`"),
        attach=f"`{state.attach_command}`" if state.attach_command else ON_PAPER["attach"],
        client=identity.client_id,
        secret=f"--vault-name {state.vault_name} --name {identity.secret}",
    )
