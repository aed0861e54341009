"""The stacks of an environment for a rollout: the engine's states, and the records of earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from identity.credentials import rfc3339
from ops.fleet.processes import StackRun
from ops.fleet.records import Record, Records, fingerprint, whole
from ops.fleet.stacks import FleetEnvironment, FleetStack
from ops.outputs.rows import rows
from ops.stack.engine import Engine
from ops.stack.environment import local_paths
from ops.stack.state import State, outputs_of


class EngineStacks:
    """The stacks of the project in `root`; `arguments` go to each `idstack up`."""

    def __init__(self, environment: FleetEnvironment, arguments: Sequence[str], root: Path) -> None:
        self._environment = environment
        self._arguments = arguments
        self._root = root
        self._records = Records(root)
        self._programs: dict[str, str] = {}

    def is_unchanged(self, stack: FleetStack) -> bool:
        """Whether a run of this stack would change nothing."""
        record = self._records.read(stack.name)
        if record is None or record.outcome != "up":
            return False
        return record.holds(self._program(stack), self._updated.get(stack.name), datetime.now(UTC))

    def start(self, stack: FleetStack) -> StackRun:
        """Begin its run."""
        self._records.forget(stack.name)
        self._programs[stack.name] = self._program(stack)
        return StackRun(stack, self._arguments, root=self._root, log=self._records.log(stack.name))

    def ended(self, stack: FleetStack, *, is_up: bool, reason: str) -> None:
        """Note how its run ended; `reason` is its last line."""
        now = datetime.now(UTC).replace(microsecond=0)
        if not is_up:
            self._records.write(stack.name, Record(outcome="failed", at=now, reason=reason))
            return
        state = Engine(stack.name, self._root).state()
        written = time_of(state)
        if written is not None:
            self._updated[stack.name] = whole(written)
        due = [row.renew_after for row in rows(outputs_of(state), None) if row.renew_after is not None]
        self._records.write(
            stack.name,
            Record(outcome="up", at=now, program=self._programs[stack.name], state=written, due=min(due, default=None)),
        )

    def brought_up_at(self, stack: FleetStack) -> datetime | None:
        """When its last run ended, if that is known."""
        record = self._records.read(stack.name)
        return record.at if record is not None and record.outcome == "up" else None

    def log(self, stack: FleetStack) -> Path:
        """Where the output of its last run is."""
        return self._records.log(stack.name)

    def _program(self, stack: FleetStack) -> str:
        """The fingerprint of a stack's inputs; those of a cluster's stack include the run of the shared one."""
        shared = self._environment.shared
        of_shared = "" if shared is None or stack is shared else f" {self._updated.get(shared.name)}"
        return f"{fingerprint(self._root, stack.name)}{of_shared}"

    @cached_property
    def _updated(self) -> dict[str, datetime]:
        """The time of each stack's state; none if the local cloud was removed."""
        if self._environment.is_local and not local_paths().engine.exists():
            return {}
        listed = Engine(self._environment.stacks[0].name, self._root).updated()
        return {name: whole(moment) for name, moment in listed.items()}


def time_of(state: State) -> datetime | None:
    """When a state was last written; None for a new stack's."""
    manifest = state["deployment"].get("manifest")
    return None if manifest is None else rfc3339.parse(manifest["time"])
