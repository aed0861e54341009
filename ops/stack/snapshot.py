"""A stack at one moment, for a command that only looks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from identity.outputs import StackOutputs
from ops.stack.engine import Engine
from ops.stack.state import State, outputs_of


@dataclass(frozen=True)
class StackSnapshot(Engine):
    """The engine, which asks `pulumi` for the state and the configuration once each: a process takes about a second.

    A command that changes the stack needs another snapshot afterwards.
    """

    def state(self) -> State:
        """As the engine's, of the first call."""
        return self._state

    def outputs(self) -> StackOutputs[str]:
        """The stack's outputs, out of the state; no output of a stack is secret."""
        return outputs_of(self.state())

    def configured_values(self) -> dict[str, Any]:
        """As the engine's, of the first call."""
        return self._configured_values

    @cached_property
    def _state(self) -> State:
        return super().state()

    @cached_property
    def _configured_values(self) -> dict[str, Any]:
        return super().configured_values()
