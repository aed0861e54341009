"""The schema of the emulated azuread: one row per argument, and the rules of a plan that follow from the rows.

Source: the schema of each resource in hashicorp/terraform-provider-azuread (`internal/services/.../*_resource.go`:
ForceNew, Default, Computed, Sensitive, TypeSet, ValidateFunc), which Pulumi's azuread bridges. A plan compares the
state with the inputs, as Terraform's does, so the next update corrects what a refresh found changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from plugin import UNKNOWN, PropertyChange, Props, Secret, Value, unwrap

# Input in which the bridge lists the defaults of Check.
DEFAULTS: Final = "__defaults"
_UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_RFC3339: Final = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})"


@dataclass(frozen=True)
class ValuePattern:
    """The pattern of a string and its description in error messages."""

    pattern: str
    expected: str


UUID: Final = ValuePattern(_UUID, "a valid UUID")
RFC3339: Final = ValuePattern(_RFC3339, "a valid RFC3339 date")
APPLICATION_ID: Final = ValuePattern(
    f"/applications/{_UUID}", "the resource id of an application, /applications/<object id>"
)
NOT_EMPTY: Final = ValuePattern(r"[\s\S]+", "not to be an empty string")
AT_MOST_1024: Final = ValuePattern(r"[\s\S]{0,1024}", "at most 1024 characters long")


def one_of(*values: str) -> ValuePattern:
    """The pattern that matches only these values."""
    return ValuePattern("|".join(map(re.escape, values)), f"one of {', '.join(values)}")


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument.

    Attributes:
        graph: its property in Graph, if it has one.
        default: the value of an absent input.
        computed: the service decides the value of an absent input, which is then no difference.
        force_new: its change replaces the resource.
        unordered: a set; the order of its elements is not a difference.
        secret: marked secret in the state.
    """

    graph: str | None = None
    default: Value = None
    computed: bool = False
    force_new: bool = False
    unordered: bool = False
    secret: bool = False
    rule: ValuePattern | None = None


@dataclass(frozen=True)
class Schema:
    """Arguments by name, and the names of the outputs that only the service decides."""

    arguments: Mapping[str, Argument]
    computed: tuple[str, ...]

    def problems(self, inputs: Props) -> Iterator[str]:
        """Messages for values that the provider refuses before any request. None contains a value: it may be secret."""
        for name, value in unwrap(inputs).items():
            argument = self.arguments.get(name)
            if argument is None:
                yield f"the emulated azuread plugin does not have '{name}'; it has {', '.join(self.arguments)}"
            elif argument.rule is not None:
                texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
                if not all(re.fullmatch(argument.rule.pattern, text) for text in texts):
                    yield f"expected '{name}' to be {argument.rule.expected}"

    def with_defaults(self, inputs: Props) -> Props:
        """The inputs as Check returns them: with the defaults, but for those that are false, zero or empty.

        Source: `shouldSuppressTFSchemaDefaultValue` in pulumi-terraform-bridge `pkg/tfbridge/schema.go`, issue 2618.
        """
        missing = {
            name: argument.default
            for name, argument in self.arguments.items()
            if name not in inputs and not _empty(argument.default)
        }
        return {**inputs, **missing, DEFAULTS: sorted(missing)}

    def value(self, inputs: Props, name: str) -> Value:
        """The plain value of an argument, or its default."""
        return unwrap(inputs.get(name, self.arguments[name].default))

    def graph_body(self, inputs: Props) -> Props:
        """The properties for Graph, where an empty string is null."""
        return {
            argument.graph: None if (value := self.value(inputs, name)) == "" else value
            for name, argument in self.arguments.items()
            if argument.graph is not None and not (argument.computed and name not in inputs)
        }

    def changes(self, state: Props, inputs: Props) -> dict[str, PropertyChange]:
        """The plan: the differences between state and inputs."""
        changes = {}
        for name, argument in self.arguments.items():
            if argument.computed and name not in inputs:
                continue
            old, new = unwrap(state.get(name)), self.value(inputs, name)
            if not _same(old, new, argument):
                # The bridge calls no difference one of the inputs: it compares with the state.
                changes[name] = PropertyChange(_kind(old, new), replace=argument.force_new, input=False)
        return changes

    def planned(self, inputs: Props, state: Props) -> Props:
        """State as a preview knows it: inputs and defaults, the rest as it was, UNKNOWN on a create."""
        known = {name: state.get(name, UNKNOWN) for name in self.computed}
        for name, argument in self.arguments.items():
            if argument.computed and name not in inputs:
                known[name] = state.get(name, UNKNOWN)
            else:
                known[name] = inputs.get(name, argument.default)
        return self.sealed({name: value for name, value in known.items() if value is not None})

    def sealed(self, state: Props) -> Props:
        """The state with its sensitive values marked secret."""
        return {
            name: Secret(value) if self._is_secret(name) and not isinstance(value, Secret) else value
            for name, value in state.items()
        }

    def refreshed_inputs(self, inputs: Props, state: Props) -> Props:
        """Inputs after a read: live values of the earlier inputs; on import all that is not empty or a default."""
        if inputs:
            kept = {name: _kept(value, state.get(name)) for name, value in inputs.items() if name in self.arguments}
            # A changed one is no longer a default (`extractInputsObject` in the same file of the bridge).
            filled_in = [name for name in inputs.get(DEFAULTS, ()) if kept[name] == inputs[name]]
            return {**kept, DEFAULTS: filled_in} if DEFAULTS in inputs else kept
        return {
            name: state[name]
            for name, argument in self.arguments.items()
            if not _empty(state.get(name)) and unwrap(state[name]) != argument.default
        }

    def _is_secret(self, name: str) -> bool:
        return name in self.arguments and self.arguments[name].secret


def _kind(old: Value, new: Value) -> Literal["add", "delete", "update"]:
    if _empty(new):
        return "delete"
    return "add" if _empty(old) else "update"


def _kept(value: Value, live: Value) -> Value:
    """The live value with the secret mark of the input; a value that no read returns is the input's."""
    if live is None:
        return value
    return Secret(unwrap(live)) if isinstance(value, Secret) else live


def _same(old: Value, new: Value, argument: Argument) -> bool:
    if new is UNKNOWN:
        return False
    if argument.unordered and isinstance(old, list) and isinstance(new, list) and UNKNOWN not in new:
        return sorted(old) == sorted(new)
    return old == new or (_empty(old) and _empty(new))


def _empty(value: Value) -> bool:
    """Whether this is one of Terraform's zero values, which a state cannot distinguish from a missing value."""
    return value is None or unwrap(value) in ("", [], {}, False)
