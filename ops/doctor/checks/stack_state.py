"""Whether the engine reads the stack's state at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import Unread
from ops.doctor.model.world import StackWorld
from ops.stack.environment import is_local

# What helps, by words of the engine's error (pulumi v3.259).
_FIXES: Final = (
    (
        "no stack named",
        "`idstack pulumi --stack {stack} -- stack ls` lists the stacks of this backend; {create} creates one",
    ),
    (
        "PULUMI_ACCESS_TOKEN",
        "name the stack's backend: write idstack:backend into its file, or run "
        "`idstack pulumi --stack {stack} -- login <url>`",
    ),
    (
        "cannot be read: ",
        "{recover} puts a whole copy back if there is one; `.venv/bin/idstack restore` the state of a backup",
    ),
    (
        "unable to open",
        "correct idstack:backend in the stack's file, and sign in to it (`az login`, Storage Blob Data Reader)",
    ),
)


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    if isinstance(world.state, Unread):
        why = world.state.why
        create = world.make("up") if is_local(world.stack) else f"`idstack init {world.stack}`"
        fix = next((fix for words, fix in _FIXES if words in why), "correct what the engine names, then run it again")
        yield Fault(evidence=why, fix=fix.format(stack=world.stack, create=create, recover=world.make("recover")))


CHECK = of_stack(Stage.ENGINE, "state", (Part.STATE,), _find)
