"""Whether the identity may do at each resource what it has to, by all the roles that ARM shows there and above.

What it has to is in production's role, as ARM has it today: a custom role may have lost an action, and so may an
assignment that another tool replaced. Deny assignments are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from ops.doctor.model.check import Fault, Part, Stage, of_principal
from ops.doctor.model.expected import ExpectedAccess, GrantedPrincipal
from ops.doctor.model.seen import NotRead, entry
from ops.doctor.model.world import SeenRoleDefinition, StackWorld

# What has a place of its own, or is not there: a cluster without a route table needs no action on one.
_OF_THE_NETWORK: Final = tuple(
    f"microsoft.network/{each}/"
    for each in ("virtualnetworks", "networksecuritygroups", "routetables", "natgateways", "dnszones")
)
Action = tuple[str, bool]  # as ARM writes it, and whether it is a data action


def _find(world: StackWorld, identity: GrantedPrincipal) -> Iterator[Fault]:
    if not identity.accesses:
        return
    needed = entry(world.definitions, identity.role_guid)
    if needed is None:
        raise NotRead(f"the role {identity.role_guid}, which tells what it needs, is not in this cloud")
    types = {each.type for each in identity.accesses}
    wanted: dict[str | None, list[Action]] = {}
    for permission in needed.permissions:
        for is_data, names in ((False, permission.actions), (True, permission.data_actions)):
            for name in names:
                wanted.setdefault(_place(name.lower(), types), []).append((name, is_data))
    for access in identity.accesses:
        roles = list(_roles(world, access))
        missing = [action for action in wanted.get(access.type, ()) if not _grants(roles, action)]
        if missing:
            yield Fault(evidence=_evidence(access, missing, roles), fix=_fix(world, identity, access, roles))


def _place(action: str, types: Iterable[str]) -> str | None:
    """The type of the places where an action is needed: its own or one above, or the empty one of everything else."""
    if found := [each for each in types if each and action.startswith(f"{each.lower()}/")]:
        return max(found, key=len)
    return None if action.startswith(_OF_THE_NETWORK) else ""


def _roles(world: StackWorld, access: ExpectedAccess) -> Iterator[SeenRoleDefinition]:
    for each in entry(world.assignments, access.key):
        found = entry(world.definitions, each.role_definition_id.rpartition("/")[2].lower())
        if found is not None:
            yield found


def _grants(roles: Iterable[SeenRoleDefinition], action: Action) -> bool:
    """An exception takes away from the entry that it is in, and from no other (azure-docs `role-definitions.md`)."""
    name, is_data = action
    pairs = (
        (each.data_actions, each.data_exceptions) if is_data else (each.actions, each.exceptions)
        for role in roles
        for each in role.permissions
    )
    return any(_matches(granted, name) and not _matches(taken, name) for granted, taken in pairs)


def _matches(patterns: Iterable[str], action: str) -> bool:
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)


def _evidence(access: ExpectedAccess, missing: list[Action], roles: list[SeenRoleDefinition]) -> str:
    names = ", ".join(f"{name} (data)" if is_data else name for name, is_data in missing)
    held = ", ".join(dict.fromkeys(f'"{each.name}"' for each in roles)) or "none"
    return f"the principal {access.principal_id} lacks {names} at {access.scope}; its roles there and above: {held}"


def _fix(world: StackWorld, identity: GrantedPrincipal, access: ExpectedAccess, roles: list[SeenRoleDefinition]) -> str:
    custom = next((each.name for each in roles if each.is_custom), None)
    if custom is None:
        return f"{world.repair}; Azure takes up to ten minutes to apply a role"
    return (
        f'put the actions back into the custom role: `az role definition list --name "{custom}"` prints it, and '
        f"`az role definition update --role-definition <file>` writes it; or assign production's role beside "
        f"it: `az role assignment create --role {identity.role_guid} --assignee-object-id {access.principal_id} "
        f"--assignee-principal-type ServicePrincipal --scope {access.scope}`"
    )


CHECK = of_principal(Stage.PROOF_CALL, "actions", (Part.ROLES,), _find)
