"""`StackOwnerResource`: the id by which a stack's things in Azure are told from those of every other stack."""

from __future__ import annotations

import uuid
from typing import Final

from plugin import UNKNOWN, Checked, Created, Diff, Props, diff_properties
from provider import schema
from provider.state_only import StateOnly

_OWNER_ID: Final = "ownerId"


class StackOwnerResource(StateOnly):
    """No inputs. Output: `ownerId`, a UUID that is made once and stays for as long as the state does."""

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Nothing can be wrong but the state's schema."""
        if old is not None:
            schema.require(old)
        return Checked(schema.marked(new), [])

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every property may change in place."""
        return Diff(diff_properties(old_inputs, new_inputs))

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Make the id; in a preview leave it unknown."""
        if preview:
            return Created("", inputs | {_OWNER_ID: UNKNOWN})
        made = str(uuid.uuid4())
        return Created(made, inputs | {_OWNER_ID: made})

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Keep the id."""
        return new_inputs | {_OWNER_ID: old_state[_OWNER_ID]}
