"""The common part of the azuread resource types: check, plan and refresh by schema."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from emulated import sdk_types
from emulated.azuread.graph import GraphClient
from emulated.azuread.schema import DEFAULTS, Schema
from emulated.client import RefusalError
from emulated.secret_marks import mark_secrets
from plugin import Checked, CheckFailure, Created, Diff, PluginError, Props, ReadResult, Resource


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


def failed(summary: str, error: RefusalError) -> PluginError:
    """The provider's diagnostic: its own summary, then Graph's message."""
    return PluginError(f"{summary}: {error}")


def exists_already(resource: str, id: str) -> PluginError:
    """ImportAsExistsDiag of `internal/helpers/tf/errors.go`."""
    return PluginError(
        f'A resource with the ID "{id}" already exists: To be managed via Terraform, this resource needs to be '
        f'imported into the State. Please see the resource documentation for "{resource}" for more information.'
    )
