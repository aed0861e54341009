"""`StackOwnerResource`: the id by which a stack's things in Azure are told from those of every other stack."""

from __future__ import annotations

import uuid

from identity.plugin_schema import StackOwnerInputs, StackOwnerOutputs
from provider.resource import TypedResource


class StackOwnerResource(TypedResource[StackOwnerInputs, StackOwnerOutputs[str]]):
    """The id is made once and stays for as long as the state does."""

    inputs = StackOwnerInputs
    outputs = StackOwnerOutputs

    def make(self, urn: str, inputs: StackOwnerInputs) -> tuple[str, StackOwnerOutputs[str]]:
        """Make the id."""
        owner_id = str(uuid.uuid4())
        return owner_id, {"ownerId": owner_id}
