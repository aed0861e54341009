"""Whether the engine reads the stack's state at all."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import Unread
from ops.doctor.model.world import StackWorld
from ops.stack.environment import is_local

# What helps, by words of the engine's error (pulumi v3.259).
_FIXES: Final = (
    (
        "has no stack",
        "`idstack pulumi --stack {stack} -- stack ls` lists the stacks of this backend; {create} creates one; if it is "
        "in another one, {backend}",
    ),
    ("nobody knows where the state", "name the stack's backend: {backend}"),
    (
        "cannot be read: ",
        "{recover} puts a whole copy back if there is one; `.venv/bin/idstack restore` the state of a backup",
    ),
    (
        "If the address is wrong",
        "correct idstack:backend in the stack's file, and sign in to it (`az login`, Storage Blob Data Reader)",
    ),
    ("failed to acquire a token", "sign in to the backend: `az login`, with Storage Blob Data Reader on its account"),
    ("AuthorizationPermissionMismatch", "have Storage Blob Data Reader assigned on the backend's storage account"),
)
_OTHERWISE: Final = "correct what the engine names, then run it again"
_BACKEND: Final = "write idstack:backend into the stack's file, or run `idstack pulumi --stack {} -- login <url>`"
_LONGEST: Final = 400  # of the engine's error, which may list every way to sign in that it tried


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    if isinstance(world.state, Unread):
        why = textwrap.shorten(world.state.why, _LONGEST, placeholder=" ...")
        fix = next(
            (fix for words, fix in _FIXES if words in world.state.why),
            _OTHERWISE,
        )
        words = {
            "stack": world.stack,
            "create": world.make("up") if is_local(world.stack) else f"`idstack init {world.stack}`",
            "backend": _BACKEND.format(world.stack),
            "recover": world.make("recover"),
        }
        yield Fault(evidence=why, fix=fix.format(**words))


CHECKS: Final[tuple[Check, ...]] = (of_stack(Stage.ENGINE, "state", (Part.STATE,), _find),)
