"""What the resources of the plugin have in common: checks, diffs, outputs, refreshes, and the words of a failure."""

from __future__ import annotations

import re
import typing
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, NotRequired, TypeVar, Union, cast

from identity.azure.errors import AccessError
from identity.catalogue import CONTROL_PLANE
from identity.credentials import rfc3339
from identity.naming import comparable, kebab
from identity.plugin_schema import AZURE_NAMES, SCHEMA_MARK, SECRET_INPUT, UnknownSchemaError, require_current_schema
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
    diff_properties,
    unwrap,
)

_Inputs = TypeVar("_Inputs", bound=Mapping[str, Any])
_Outputs = TypeVar("_Outputs", bound=Mapping[str, Any])
_FIELDS: Final = {kebab(row.field): row.field for row in CONTROL_PLANE}


class Inputs:
    """The plain inputs of Check, and what is wrong with them; an unknown value is not wrong."""

    def __init__(self, properties: Props) -> None:
        self._properties = properties
        self.failures: list[CheckFailure] = []

    def require(self, schema: Any, *, optional: Set[str] = frozenset()) -> None:
        """Refuse values of another type than the TypedDict gives their key; an optional one may be absent or empty.

        Objects, and numbers without a least value, are left to the resource's own rules.
        """
        for name, hint in typing.get_type_hints(schema, include_extras=True).items():
            is_optional = typing.get_origin(hint) is NotRequired
            if self._properties.get(name) in (None, "") and (is_optional or name in optional):
                continue
            kind = typing.get_args(hint)[0] if is_optional else hint
            fits, accepted = _form(kind)
            if not fits(self._properties.get(name)):
                self.refuse(name, accepted)

    def require_days(self, name: str, *, since: datetime) -> None:
        """Refuse a number of days that ends after the year 9999."""
        days = self._properties.get(name)
        if isinstance(days, int):
            try:
                since + timedelta(days=days)
            except OverflowError:
                self.refuse(name, f"days after {rfc3339.render(since)} that end before the year 10000")

    def refuse(self, name: str, accepted: str) -> None:
        """Note that the value called `name` is wrong, unless it is not known yet."""
        value = self._properties.get(name)
        if value is not UNKNOWN:
            self.failures.append(CheckFailure(name, f"found {_found(value)}; accepted: {accepted}"))


def _form(kind: Any) -> tuple[Callable[[Value], bool], str]:
    """Whether a known value is of this type, and what a refusal calls the type."""
    match typing.get_origin(kind), typing.get_args(kind):
        case origin, (of, *_) if origin in (Union, UnionType):
            return _form(of)
        case origin, (_, bound) if origin is Annotated:
            return lambda value: type(value) is int and value >= bound.least, f"an integer of at least {bound.least}"
        case origin, values if origin is Literal:
            return lambda value: value in values, " or ".join(values)
        case origin, (of,) if origin is Sequence:
            fits, accepted = _form(of)
            return (
                lambda value: isinstance(value, list) and all(item is UNKNOWN or fits(item) for item in value)
            ), f"a list, each item {accepted}"
    if kind is str or isinstance(kind, TypeVar):
        return lambda value: isinstance(value, str) and value != "", "a string that is not empty"
    if kind is bool:
        return lambda value: isinstance(value, bool), "true or false"
    return lambda _: True, "an object"


def _found(value: Value) -> str:
    """What a refusal shows of a value: never a string, nor what holds one, for some inputs are secret."""
    match value:
        case None:
            return "nothing"
        case bool() | int() | float():
            return repr(value)
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"


class RefusedInputError(Exception):
    """An input that Check refuses; `property` is its path, the message all that the user reads."""

    def __init__(self, property: str, message: str) -> None:
        super().__init__(message)
        self.property = property


class TypedResource(Resource, Generic[_Inputs, _Outputs]):
    """A resource with the properties of `identity/plugin_schema.py`, of which a subclass has the rules.

    Its methods get inputs as Check leaves them, without secret marks; in a preview some are UNKNOWN. The state has
    inputs and outputs. By default a resource exists in the state alone.
    """

    # The TypedDicts of a program's inputs, and of the outputs that are not inputs.
    inputs: ClassVar[Any]
    outputs: ClassVar[Any] = None
    # Inputs that are not kept; inputs that a diff ignores; inputs whose change replaces the resource.
    dropped: ClassVar[Set[str]] = frozenset()
    uncompared: ClassVar[Set[str]] = frozenset()
    replacing: ClassVar[Set[str]] = frozenset()
    delete_before_replace: ClassVar[bool] = False
    # Why an import is refused, and what to do instead.
    no_import: ClassVar[str] = (
        "it exists in the state of its stack alone. Remove the import and let the next `up` create it"
    )

    def require(self, inputs: _Inputs, report: Inputs) -> None:
        """Rules of single inputs beyond their types; any of them may be missing or of another type."""
        return

    def decide(self, urn: str, old: Mapping[str, Any] | None, inputs: _Inputs) -> Props:
        """What Check adds to valid inputs, or changes; `old` are those in the state. Raises RefusedInputError."""
        return {}

    def planned(self, inputs: _Inputs) -> Props:
        """The outputs as a preview of their creation knows them."""
        return dict.fromkeys(self._output_names, UNKNOWN)

    @abstractmethod
    def make(self, urn: str, inputs: _Inputs) -> tuple[str, _Outputs]:
        """Create the resource; returns its id and its outputs."""

    def keeps_outputs(self, old: _Inputs, new: _Inputs) -> bool:
        """Whether the outputs stay with new inputs."""
        return True

    def amend(self, urn: str, old: _Inputs, outputs: _Outputs, new: _Inputs) -> _Outputs:
        """Change the resource; returns its outputs."""
        return outputs if self.keeps_outputs(old, new) else self.make(urn, new)[1]

    def live(self, urn: str, inputs: _Inputs) -> Mapping[str, Any] | None:
        """The properties that differ in Azure or the cluster; None if the resource is gone."""
        return {}

    def remove(self, urn: str, id: str, inputs: _Inputs, outputs: _Outputs) -> None:
        """Delete the resource; deleting one that is gone succeeds."""
        return

    def optional(self, old: Props | None, new: Props) -> Set[str]:
        """Inputs that may be absent in this check, though a program always has them."""
        return frozenset()

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate and decide."""
        known = unwrap(new)
        report = Inputs(known)
        report.require(self.inputs, optional=self.optional(old, new))
        self.require(known, report)
        if old is not None:
            try:
                require_current_schema(unwrap(old))
            except UnknownSchemaError as error:
                raise PluginError(str(error)) from None
        if report.failures:
            return Checked(new, report.failures)
        try:
            decided = self.decide(urn, None if old is None else unwrap(old), known)
        except RefusedInputError as error:
            return Checked(new, [CheckFailure(error.property, str(error))])
        kept = {name: value for name, value in new.items() if name not in self.dropped}
        return Checked(marked(kept | decided))

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Compare the inputs, as Azure does."""
        ignored = {name for name in AZURE_NAMES if same(old_inputs, new_inputs, name)} | self.uncompared
        old, new = ({name: inputs[name] for name in inputs.keys() - ignored} for inputs in (old_inputs, new_inputs))
        changes = diff_properties(old, new)
        return Diff(
            {path: PropertyChange(change.kind, path in self.replacing) for path, change in changes.items()},
            delete_before_replace=self.delete_before_replace,
        )

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Create it; a preview returns what is known."""
        known = unwrap(inputs)
        if preview:
            return Created("", _with_secret(inputs | self.planned(known)))
        id, outputs = self.make(urn, known)
        return Created(id, _with_secret({**inputs, **outputs}))

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """The state with the live properties; raises `PluginError` for an import."""
        if not state:
            raise PluginError(f"{name_of(urn)} cannot be imported: {self.no_import}")
        live = self.live(urn, unwrap(inputs))
        return (
            None if live is None else ReadResult(id, _with_secret({**inputs, **live}), _with_secret({**state, **live}))
        )

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Change it; a preview returns what is known."""
        old, new = unwrap(old_inputs), unwrap(new_inputs)
        kept = {name: old_state[name] for name in self._output_names if name in old_state}
        if preview:
            return _with_secret(new_inputs | self.planned(new) | (kept if self.keeps_outputs(old, new) else {}))
        return _with_secret({**new_inputs, **self.amend(urn, old, cast(_Outputs, kept), new)})

    @property
    def _output_names(self) -> Set[str]:
        return frozenset() if self.outputs is None else self.outputs.__annotations__.keys()

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Delete it."""
        known = unwrap(state | inputs)
        self.remove(urn, id, known, known)


def same(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> bool:
    """Whether an input is the same for Azure."""
    before, after = (comparable(str(unwrap(inputs.get(name)))) for inputs in (old, new))
    return before == after


def marked(properties: Props) -> Props:
    """The properties with the number of their schema, and with the kubeconfig secret."""
    return _with_secret(properties | SCHEMA_MARK)


def _with_secret(properties: Props) -> Props:
    """The properties with the kubeconfig secret, whatever happened to its mark on the way."""
    if SECRET_INPUT not in properties:
        return properties
    return properties | {SECRET_INPUT: Secret(unwrap(properties[SECRET_INPUT]))}


def name_of(urn: str) -> str:
    """The name of a resource in its program."""
    return urn.rsplit("::", 1)[-1]


def rotation(urn: str, options: str) -> str:
    """The command that rotates the control-plane identity of this resource alone (`<cluster>-<identity>-...`)."""
    identity = re.sub(f"(.+)-({'|'.join(_FIELDS)})-.*", lambda match: f"{match[1]}/{_FIELDS[match[2]]}", name_of(urn))
    return f"`.venv/bin/idstack rotate {options} --stack {urn.split(':')[2]} --identity {identity}`"


@contextmanager
def plugin_errors(what: str, fix: str = "") -> Iterator[None]:
    """Turn a request's AccessError into a PluginError: what failed, the error, and how to fix it."""
    try:
        yield
    except AccessError as error:
        raise PluginError(f"{what}: {error}{fix}") from None
