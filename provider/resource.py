"""What the resources of the plugin have in common: checks, diffs, outputs, refreshes, and the words of a failure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeVar, cast

from identity.azure.errors import AccessError
from identity.naming import comparable
from identity.plugin_schema import AZURE_NAMES, SECRET_INPUT
from identity.state_schema import CURRENT, PROPERTY, UnknownSchemaError, require_current
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
    diff_properties,
    unwrap,
)
from provider.inputs import Inputs

_Inputs = TypeVar("_Inputs", bound=Mapping[str, Any])
_Outputs = TypeVar("_Outputs", bound=Mapping[str, Any])


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
                require_current(unwrap(old))
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
        old, new = (
            {name: value for name, value in inputs.items() if name not in ignored}
            for inputs in (old_inputs, new_inputs)
        )
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
    return _with_secret(properties | {PROPERTY: CURRENT})


def _with_secret(properties: Props) -> Props:
    """The properties with the kubeconfig secret, whatever happened to its mark on the way."""
    if SECRET_INPUT not in properties:
        return properties
    return properties | {SECRET_INPUT: Secret(unwrap(properties[SECRET_INPUT]))}


def name_of(urn: str) -> str:
    """The name of a resource in its program."""
    return urn.rsplit("::", 1)[-1]


@contextmanager
def explained(what: str, fix: str = "") -> Iterator[None]:
    """Turn a request's AccessError into a PluginError: what failed, the error, and how to fix it."""
    try:
        yield
    except AccessError as error:
        raise PluginError(f"{what}: {error}{fix}") from None
