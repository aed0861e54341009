"""Whether the engine reads the stack's state at all."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Stage, WholeStack, of_stack
from ops.world.parts import Part
from ops.world.seen import Unread
from ops.world.stack_world import StackWorld

# Of an error that the commands do not put into words of their own: it may list every way to sign in that was tried.
_LONGEST: Final = 800


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    if isinstance(world.state, Unread):
        why = textwrap.shorten(world.state.why, _LONGEST, placeholder=" ...")
        # The commands' own errors name the way out (`ops/stack/backend_failures.py`, `ops/stack/state_file.py`).
        yield Fault(evidence=why, fix="do what the error says, then run the doctor again")


CHECKS: Final[tuple[Check, ...]] = (of_stack(Stage.ENGINE, "state", (Part.STATE,), _find),)
