"""Base of the resources that exist in the stack's state alone."""

from __future__ import annotations

from typing import ClassVar

from plugin import PluginError, Props, ReadResult, Resource, Secret, unwrap


class StateOnly(Resource):
    """A resource without a counterpart in the world: there is nothing to read, to delete or to import."""

    secrets: ClassVar[tuple[str, ...]] = ()

    def marked(self, properties: Props) -> Props:
        """The properties with the secret ones marked, whatever happened to the marks on the way."""
        return properties | {name: Secret(unwrap(properties[name])) for name in self.secrets if name in properties}

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """The state as it is; raises `PluginError` for an import."""
        if not state:
            raise PluginError(
                f"{urn.rsplit('::', 1)[-1]} cannot be imported: it exists in the state of its stack alone. "
                "Remove the import and let the next `up` create it"
            )
        return ReadResult(id, self.marked(inputs), self.marked(state))

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Do nothing: the engine takes the resource out of the state."""
