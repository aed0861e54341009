"""Whether the engine can read the stack's state."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Stage, WholeStack, of_stack
from ops.world.seen import NotReadError, Part, StackWorld, Unread

# The engine's own error may list every sign-in that it has tried.
_MAX_LENGTH: Final = 800


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    if isinstance(world.state, Unread):
        if not isinstance(world.configuration, Unread) and world.configuration.prevents_sign_in:
            raise NotReadError(world.state.why)
        why = textwrap.shorten(world.state.why, _MAX_LENGTH, placeholder=" ...")
        # The commands' errors name the remedy (`ops/stack/failures.py`, `ops/stack/state_file.py`).
        yield Fault(evidence=why, fix="correct what the error names, then run the doctor again")


CHECKS: Final[tuple[Check, ...]] = (of_stack(Stage.ENGINE, "state", (Part.STATE, Part.CONFIGURATION), _find),)
