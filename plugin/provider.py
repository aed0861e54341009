"""What a plugin author writes: a `Provider` and one `Resource` per type token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from plugin.values import UNKNOWN, Props, Value, unwrap


class PluginError(Exception):
    """A failure whose message is all that the user reads: no stack trace is added."""


class InitializationError(PluginError):
    """A resource that was created or updated but does not work yet: it gets into the state, and is updated next time.

    `id` and `state` are as `Resource.create` returns them.
    """

    def __init__(self, message: str, id: str, state: Props) -> None:
        super().__init__(message)
        self.id = id
        self.state = state


@dataclass(frozen=True)
class CheckFailure:
    """One refused input. `property` is its path (`properties.value`), `reason` the sentence a user reads."""

    property: str
    reason: str


@dataclass(frozen=True)
class Checked:
    """Inputs as they go into the state, defaults filled in; with failures nothing is registered."""

    inputs: Props
    failures: Sequence[CheckFailure] = ()


@dataclass(frozen=True)
class PropertyChange:
    """One line of a detailed diff."""

    kind: Literal["add", "delete", "update"]
    replace: bool = False
    # Whether the path is one of the inputs; the engine shows a path of the outputs alone as a deletion.
    input: bool = True


@dataclass(frozen=True)
class Diff:
    """Changes by property path; empty means the resource stays as it is."""

    changes: Mapping[str, PropertyChange] = field(default_factory=dict)
    delete_before_replace: bool = False
    # Whether the properties that change are listed as well, without their paths.
    has_names: bool = True


@dataclass(frozen=True)
class Created:
    """A created resource; in previews `id` is empty and the state may hold UNKNOWN."""

    id: str
    state: Props


@dataclass(frozen=True)
class ReadResult:
    """A resource as it is in the world; `inputs` are what a program would have to write to get it."""

    id: str
    inputs: Props
    state: Props


class Resource(ABC):
    """One resource type. Methods run on many threads at once and raise `PluginError` for what a user can fix."""

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate inputs. `old` are the inputs in the state, None for a new resource."""
        return Checked(new)

    @abstractmethod
    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Compare the resource with new inputs, which may hold UNKNOWN."""

    @abstractmethod
    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Create the resource, or in a preview return what is known of it."""

    @abstractmethod
    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """The live resource, None if it is gone. `inputs` and `state` are empty on import."""

    @abstractmethod
    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Update in place; returns the new state."""

    @abstractmethod
    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Delete; a resource that is gone already is deleted."""


class Provider(ABC):
    """A resource plugin: `pulumi-resource-<name>`."""

    name: str
    version: str

    def check_config(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate the provider's own inputs (`up` and `preview` only; the engine skips it on refresh and destroy)."""
        return Checked(new)

    def replacing(self, old: Props, new: Props) -> tuple[str, ...]:
        """The provider's own inputs whose change replaces everything that the provider has made."""
        return ()

    def configure(self, inputs: Props) -> None:
        """Take the provider's inputs; runs before any other call, on every command."""
        return

    @abstractmethod
    def resource(self, type_token: str) -> Resource:
        """The resource behind a type token; raises `PluginError` for a type this plugin does not have."""

    def invoke(self, token: str, args: Props) -> Props:
        """Run a function; raises `PluginError` for one this plugin does not have."""
        raise PluginError(f'the {self.name} plugin has no function "{token}"')


def diff_properties(old: Props, new: Props, prefix: str = "") -> dict[str, PropertyChange]:
    """Leaf changes between two property maps, secret marks aside; an UNKNOWN counts as changed."""
    changes: dict[str, PropertyChange] = {}
    for key in sorted({*old, *new}):
        path = _joined(prefix, key)
        if key not in new:
            changes[path] = PropertyChange("delete")
        elif key not in old:
            changes[path] = PropertyChange("add")
        else:
            changes.update(_diff_values(path, unwrap(old[key]), unwrap(new[key])))
    return changes


def _joined(path: str, key: str) -> str:
    """The path of a member, as Pulumi's PropertyPath has it (`tags["cost.center"]`)."""
    if not key or set(key) & set('."[]'):
        quoted = key.replace('"', '\\"')
        return f'{path}["{quoted}"]'
    return f"{path}.{key}" if path else key


def _diff_values(path: str, old: Value, new: Value) -> dict[str, PropertyChange]:
    if isinstance(old, dict) and isinstance(new, dict):
        return diff_properties(old, new, path)
    if isinstance(old, list) and isinstance(new, list):
        changes: dict[str, PropertyChange] = {}
        for index in range(max(len(old), len(new))):
            item = f"{path}[{index}]"
            if index >= len(new):
                changes[item] = PropertyChange("delete")
            elif index >= len(old):
                changes[item] = PropertyChange("add")
            else:
                changes.update(_diff_values(item, old[index], new[index]))
        return changes
    return {} if new is not UNKNOWN and old == new else {path: PropertyChange("update")}
