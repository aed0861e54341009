"""Whether the identity may do what it has to, and does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from ops.doctor.model.check import Check, Fault, Stage, of_identity, of_principal
from ops.doctor.model.reports import reports_of
from ops.doctor.model.roles import lost
from ops.world.expected import ExpectedAccess, GrantedPrincipal, Identity
from ops.world.parts import Part
from ops.world.seen import NotReadError, entry
from ops.world.stack_world import SeenRoleDefinition, StackWorld


def _find_role(world: StackWorld, identity: GrantedPrincipal) -> Iterator[Fault]:
    """Whether ARM has the identity's role assignments as the stack made them."""
    for role in identity.roles:
        if evidence := lost(world, role):
            yield Fault(evidence=evidence, fix=world.repair)


ROLE = of_principal(Stage.PROOF_CALL, "role", (Part.ROLES,), _find_role)


# What has a place of its own, or is not there: a cluster without a route table needs no action on one.
_OF_THE_NETWORK: Final = tuple(
    f"microsoft.network/{each}/"
    for each in ("virtualnetworks", "networksecuritygroups", "routetables", "natgateways", "dnszones")
)
Action = tuple[str, bool]  # as ARM writes it, and whether it is a data action


def _find_actions(world: StackWorld, identity: GrantedPrincipal) -> Iterator[Fault]:
    """Whether the identity may do at each resource what it has to, by all the roles that ARM shows there and above.

    What it has to is in production's role, as ARM has it today: a custom role may have lost an action, and so may an
    assignment that another tool replaced. Deny assignments are not read.
    """
    if not identity.accesses:
        return
    needed = entry(world.definitions, identity.role_guid)
    if needed is None:
        raise NotReadError(f"the role {identity.role_guid}, which tells what it needs, is not in this cloud")
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


ACTIONS = of_principal(Stage.PROOF_CALL, "actions", (Part.ROLES,), _find_actions)


_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404


def _find_proof_call(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the probe's last call, which only the identity's own role grants, was granted."""
    for _, pod, report in reports_of(world, identity):
        if report.is_proven or not report.is_signed_in:
            continue
        error = " ".join((report.proof_error or "it has not called yet").split())
        if report.proof_status == _FORBIDDEN:
            fix = "the roles are there: wait ten minutes for Azure, then look for a deny assignment or a locked network"
        elif report.proof_status == _NOT_FOUND:
            fix = f"what the call asks for is gone: correct the hosted cluster's configuration, then {world.make('up')}"
        else:
            fix = "let the pod reach the service: look at its network policies, proxy and DNS"
        yield Fault(evidence=f"{pod.name}: {report.action or 'the proof call'}: {error}", fix=fix)


PROOF_CALL = of_identity(Stage.PROOF_CALL, "proof-call", (Part.REPORTS, Part.CONTROL_PLANES), _find_proof_call)

CHECKS: Final[tuple[Check, ...]] = (
    ROLE,
    ACTIONS,
    PROOF_CALL,
)
