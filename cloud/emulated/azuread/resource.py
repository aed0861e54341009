"""The common part of the azuread resource types: check, plan and refresh by schema."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from emulated import sdk_types
from emulated.azuread.graph import GraphClient
from emulated.client import RefusalError
from emulated.sdk_types import mark_secrets
from plugin import (
    UNKNOWN,
    Checked,
    CheckFailure,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    ReadResult,
    Resource,
    Secret,
    Value,
    unwrap,
)

# Ids of roles and permission scopes by their values; this project's applications have neither.
NAMED_IDS: Final = ("appRoleIds", "oauth2PermissionScopeIds")
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
        secrets = {name for name, argument in self.arguments.items() if argument.secret}
        return {
            name: Secret(value) if name in secrets and not isinstance(value, Secret) else value
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


@dataclass(frozen=True)
class GraphSession:
    """A configured azuread provider: its Graph client and the caller's identity."""

    graph: GraphClient
    tenant_id: str
    client_id: str
    object_id: str


OpenSession = Callable[[], GraphSession]


class GraphResource(Resource):
    """One resource type. `arguments_type` is the SDK's class of arguments, which accepts more than is emulated."""

    schema: ClassVar[Schema]
    arguments_type: ClassVar[type]

    def __init__(self, session: OpenSession) -> None:
        self.session = session

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        # Inputs that come from a state, as in an import, have the names of the defaults among them.
        inputs = {name: value for name, value in new.items() if value is not None and name != DEFAULTS}
        of_the_sdk = [*sdk_types.problems(self.arguments_type, inputs)]
        failures = [CheckFailure("", problem) for problem in of_the_sdk or self.schema.problems(inputs)]
        return Checked(self.schema.with_defaults(inputs), failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        return Diff(self.schema.changes(old_state, new_inputs))

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        if preview:
            return Created("", self.schema.planned(inputs, {}))
        id, state = self.created(inputs)
        return Created(id, self._marked(state, inputs))

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        live = self.live(id, state)
        if live is None:
            return None
        refreshed = self.schema.refreshed_inputs(inputs, live)
        return ReadResult(id, refreshed, self._marked(live, refreshed))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        if preview:
            return self.schema.planned(new_inputs, old_state)
        return self._marked(self.changed(id, old_state, new_inputs), new_inputs)

    @abstractmethod
    def created(self, inputs: Props) -> tuple[str, Props]:
        """Create; returns id and state."""

    @abstractmethod
    def live(self, id: str, state: Props) -> Props | None:
        """The current state in the directory, with what only the old state has; None if it is gone."""

    def changed(self, id: str, state: Props, inputs: Props) -> Props:
        """Update in place; returns the new state. Types whose every argument forces a replacement have none."""
        raise PluginError(f"{type(self).__name__} cannot be updated in place")

    def existing(self, id: str, state: Props) -> Props:
        """The state right after a write; raises PluginError if it is gone already."""
        live = self.live(id, state)
        if live is None:
            raise PluginError(f"{id} was not found right after it was written")
        return live

    def _marked(self, state: Props, inputs: Props) -> Props:
        return self.schema.sealed(mark_secrets(state, inputs))


class OwnedResource(GraphResource):
    """An application or a service principal: it has owners, and its id is its path at Graph, `prefix<object id>`."""

    prefix: ClassVar[str]
    title: ClassVar[str]
    deleting: ClassVar[str]
    """The provider's word for a deletion in an error."""
    not_in_graph: ClassVar[str]
    """The argument that only the state has."""

    @classmethod
    def state_of(cls, found: dict[str, Any]) -> Props:
        """The provider's state of an object, from Graph's JSON: null becomes the empty string."""
        return {
            "objectId": found["id"],
            **{name: _stated(argument, found) for name, argument in cls.schema.arguments.items() if argument.graph},
            **cls.computed_of(found),
            **{name: {} for name in NAMED_IDS},
        }

    @classmethod
    @abstractmethod
    def computed_of(cls, found: dict[str, Any]) -> Props:
        """What the service decides, but for the object id."""

    @classmethod
    def printed(cls, id: str) -> str:
        """The id as go-azure-sdk prints it in errors."""
        return f'{cls.title} ({cls.title}: "{id.removeprefix(cls.prefix)}")'

    def live(self, id: str, state: Props) -> Props | None:
        if not id.startswith(self.prefix) or "/" in id.removeprefix(self.prefix):
            raise PluginError(f'parsing "{id}": expected an ID of the form {self.prefix}<object id>')
        graph, kept = self.session().graph, {self.not_in_graph: self.schema.value(state, self.not_in_graph)}
        found = graph.find(id)
        return None if found is None else {**self.state_of(found), "owners": graph.owner_ids(id), **kept}

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        graph = self.session().graph
        with failing(f"{self.deleting} {self.printed(id)}"):
            try:
                graph.delete(id)
            except RefusalError:
                if self.may_stay(state):
                    return
                raise
        graph.wait(f"deletion of {id}", lambda: graph.find(id) is None)

    def may_stay(self, state: Props) -> bool:
        """Whether it is no error if Graph refuses the deletion."""
        return False

    def new_body(self, inputs: Props) -> dict[str, Any]:
        """The body of a POST. The caller is the first owner, which `written` takes away unless it is in `owners`."""
        session = self.session()
        owners = dict.fromkeys((session.object_id, *(self.schema.value(inputs, "owners") or [])))
        bound = [session.graph.reference(owner) for owner in owners]
        return {"tags": [], **self.schema.graph_body(inputs), "owners@odata.bind": bound}

    def written(self, path: str, inputs: Props) -> tuple[str, Props]:
        """Id and state of a new object."""
        session = self.session()
        if session.object_id not in (self.schema.value(inputs, "owners") or []):
            session.graph.remove_owner(path, session.object_id)
        return path, self.existing(path, inputs)

    def patched(self, id: str, state: Props, inputs: Props, summary: str) -> Props:
        """The state after an update in place; `summary` begins the error of a refused one."""
        graph = self.session().graph
        with failing(summary):
            graph.patch(id, {name: value for name, value in self.schema.graph_body(inputs).items() if name != "appId"})
        if "owners" in self.schema.changes(state, inputs):
            graph.change_owners(id, self.schema.value(inputs, "owners") or [])
        return self.existing(id, inputs)


def _stated(argument: Argument, found: Mapping[str, Any]) -> Value:
    value = found.get(str(argument.graph))
    if isinstance(argument.default, bool):
        return bool(value)
    return value or ([] if argument.unordered else "")


@contextmanager
def failing(summary: str) -> Iterator[None]:
    """Within the block a refusal is the provider's diagnostic: its own summary, then Graph's message."""
    try:
        yield
    except RefusalError as error:
        raise PluginError(f"{summary}: {error}") from None


def exists_already(resource: str, id: str) -> PluginError:
    """ImportAsExistsDiag of `internal/helpers/tf/errors.go`."""
    return PluginError(
        f'A resource with the ID "{id}" already exists: To be managed via Terraform, this resource needs to be '
        f'imported into the State. Please see the resource documentation for "{resource}" for more information.'
    )
