"""The common part of the azuread resource types: check, plan and refresh by schema."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from emulated import sdk_types
from emulated.azuread.graph import GraphClient
from emulated.azuread.schema import DEFAULTS, Schema
from emulated.client import RefusalError
from emulated.sdk_types import mark_secrets
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


class OwnedResource(GraphResource):
    """An application or a service principal: it has owners, and its id is its path at Graph, `prefix<object id>`."""

    prefix: ClassVar[str]
    title: ClassVar[str]
    deleting: ClassVar[str]
    """The provider's word for a deletion in an error."""
    not_in_graph: ClassVar[str]
    """The argument that only the state has."""

    @classmethod
    @abstractmethod
    def state_of(cls, found: dict[str, Any]) -> Props:
        """The provider's state of an object, from Graph's JSON: null becomes the empty string."""

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
        try:
            graph.delete(id)
        except RefusalError as error:
            if self.may_stay(state):
                return
            raise failed(f"{self.deleting} {self.printed(id)}", error) from None
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
        try:
            graph.patch(id, {name: value for name, value in self.schema.graph_body(inputs).items() if name != "appId"})
        except RefusalError as error:
            raise failed(summary, error) from None
        if "owners" in self.schema.changes(state, inputs):
            graph.change_owners(id, self.schema.value(inputs, "owners") or [])
        return self.existing(id, inputs)


def failed(summary: str, error: RefusalError) -> PluginError:
    """The provider's diagnostic: its own summary, then Graph's message."""
    return PluginError(f"{summary}: {error}")


def exists_already(resource: str, id: str) -> PluginError:
    """ImportAsExistsDiag of `internal/helpers/tf/errors.go`."""
    return PluginError(
        f'A resource with the ID "{id}" already exists: To be managed via Terraform, this resource needs to be '
        f'imported into the State. Please see the resource documentation for "{resource}" for more information.'
    )
