"""`StackOwnerResource`: the id that distinguishes a stack's objects in Azure from those of every other stack."""

from __future__ import annotations

import uuid

from identity.plugin_schema import StackOwnerInputs, StackOwnerOutputs
from provider.resource import TypedResource


class StackOwnerResource(TypedResource[StackOwnerInputs, StackOwnerOutputs[str]]):
    """The id is generated once and stays as long as the state."""

    inputs = StackOwnerInputs
    outputs = StackOwnerOutputs

    def make(self, urn: str, inputs: StackOwnerInputs) -> tuple[str, StackOwnerOutputs[str]]:
        """Generate the id."""
        owner_id = str(uuid.uuid4())
        return owner_id, {"ownerId": owner_id}
