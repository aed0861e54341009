"""A stack's state and configuration in one file, to restore a lost backend.

It contains no secret in plain text: private keys are in the vault alone, and other secrets (kubeconfigs) are encrypted
as in the state.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from identity import resource_types
from identity.credentials import rfc3339
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message, why_unreadable
from ops.stack.state import StateResource, resources_in
from ops.stack.state_file import StateDamagedError


class Backup(BaseModel):
    """A backup of a stack; `commit` is that of the last complete run.

    `configuration` is the text of the stack's file; `state` the output of `pulumi stack export`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    stack: str = Field(min_length=1)
    created: AwareDatetime
    commit: str | None
    configuration: str
    state: dict[str, Any]

    @field_validator("state")
    @classmethod
    def _has_resources(cls, state: dict[str, Any]) -> dict[str, Any]:
        deployment = state.get("deployment")
        resources = (deployment.get("resources") or []) if isinstance(deployment, dict) else None
        if not isinstance(resources, list) or not all(map(_is_resource, resources)):
            raise ValueError("no resources in deployment, each with its urn and type")
        return state

    @property
    def date(self) -> str:
        """Its time of creation (RFC 3339, UTC)."""
        return rfc3339.render(self.created)

    @property
    def resources(self) -> list[StateResource]:
        return list(self.state["deployment"].get("resources") or ())


def _is_resource(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("urn"), str) and isinstance(part.get("type"), str)


def take(engine: Engine) -> Backup:
    """Back up the stack. Raises CommandError for an empty stack, and for one with interrupted operations."""
    state = engine.state()
    resources = resources_in(state)
    if not resources:
        raise CommandError(f"the stack {engine.stack} has nothing to back up: its state is empty")
    if state["deployment"].get("pending_operations"):
        raise CommandError(message("backup.interrupted", stack=engine.stack))
    [root] = [resource for resource in resources if resource["type"] == resource_types.STACK]
    return Backup(
        stack=engine.stack,
        created=datetime.now(UTC).replace(microsecond=0),
        commit=root.get("outputs", {}).get("commit"),
        configuration=engine.configuration_text(),
        state=dict(state),
    )


def read(file: Path, stack: str) -> Backup:
    """The backup of a stack in a file; raises CommandError if it is none, or that of another stack."""
    try:
        backup = Backup.model_validate_json(file.read_bytes())
    except OSError as error:
        raise CommandError(f"the backup {file} cannot be read: {why_unreadable(error)}") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        raise CommandError(message("backup.another-file", file=file, place=place, problem=first["msg"])) from None
    if backup.stack != stack:
        raise CommandError(f"the backup is of the stack {backup.stack}, not of {stack}: give --stack {backup.stack}")
    return backup


def restore(engine: Engine, backup: Backup) -> None:
    """Restore the state of a stack that is not in the backend, is empty there, or cannot be read.

    Raises CommandError for a stack that has resources.
    """
    engine.create()
    try:
        resources = engine.resources()
    except StateDamagedError:
        resources = []
    if resources:
        raise CommandError(message("backup.not-lost", stack=engine.stack, count=len(resources)))
    state: Any = backup.state
    engine.replace_state(state)
