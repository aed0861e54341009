"""Whether the engine reads the stack's state at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import Unread
from ops.doctor.model.world import StackWorld

# What helps, by words of the engine's error (pulumi v3.259).
_FIXES: Final = (
    ("no stack named", "`pulumi stack ls` lists the stacks of this backend; {up} makes a local one"),
    ("PULUMI_ACCESS_TOKEN", "name the stack's backend: set PULUMI_BACKEND_URL, or run `pulumi login <url>`"),
    (
        "cannot be read: ",
        "{recover} puts a whole copy back if there is one; `.venv/bin/idstack restore` the state of a backup",
    ),
    ("unable to open", "correct PULUMI_BACKEND_URL, and sign in to it (`az login`, Storage Blob Data Reader)"),
)


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    if isinstance(world.state, Unread):
        why = world.state.why
        fix = next((fix for words, fix in _FIXES if words in why), "correct what the engine names, then run it again")
        yield Fault(evidence=why, fix=fix.format(up=world.make("up"), recover=world.make("recover")))


CHECKS: Final[tuple[Check, ...]] = (of_stack(Stage.ENGINE, "state", (Part.STATE,), _find),)
