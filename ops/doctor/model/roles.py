"""A role assignment of the state, compared with what ARM has."""

from __future__ import annotations

from ops.world.expected import ExpectedRole
from ops.world.seen import entry
from ops.world.stack_world import StackWorld


def lost(world: StackWorld, role: ExpectedRole) -> str:
    """What is wrong with an assignment, in words; empty if ARM has it as the stack made it. Raises NotReadError."""
    found = entry(world.roles, role.id)
    name = f"the role assignment {role.resource} ({role.id.rpartition('/')[2]}) at {role.scope}"
    if found is None:
        return f"{name} is gone"
    if found.principal_id != role.principal_id:
        return f"{name} is of the principal {found.principal_id}; the stack gave it to {role.principal_id}"
    guid, wanted = (each.rpartition("/")[2].lower() for each in (found.role_definition_id, role.role_definition_id))
    return "" if guid == wanted else f"{name} has the role {guid}; the stack gave it {wanted}"
