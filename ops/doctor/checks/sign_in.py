"""Whether the identity, and nobody else, signs in to Entra ID, has its rights, and uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Final

from identity.credentials import rfc3339
from identity.symptoms import Family, find
from ops.doctor.checks.check import Fault, Stage, fault, of_identity, of_principal, of_symptom, renewal, role_fault
from ops.doctor.checks.pods import reports_of
from ops.world.expected import GrantedPrincipal, Identity
from ops.world.seen import EXCEPTIONS, NotReadError, Part, SeenRoleDefinition, StackWorld, entry


@of_identity(Stage.SIGN_IN, Part.APPLICATIONS)
def registration(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether Entra ID has the application, enabled, with the certificate that the stack delivered."""
    if identity.generation is None:
        return  # a managed identity: Azure keeps its certificates, which are not readable
    client, application = identity.client_id, entry(world.applications, identity.client_id)
    rotate = ("rotate", "--identity", f"{identity.cluster}/{identity.identity}")
    if application is None:
        yield fault(world, "no application", client=client)
    elif application.is_enabled is None:
        yield fault(world, "no service principal", client=client)
    elif not application.is_enabled:
        yield fault(world, "service principal disabled", client=client)
    elif (thumbprint := identity.thumbprint) is not None and thumbprint not in application.certificates:
        revoke, register = world.command(*rotate, "--revoke", "--now"), world.command(*rotate, "--register")
        yield fault(world, "not registered", thumbprint=thumbprint, client=client, revoke=revoke, register=register)
    elif thumbprint is not None and (end := application.certificates[thumbprint]) <= world.now:
        date = rfc3339.render(end)
        yield fault(world, "registration ended", thumbprint=thumbprint, date=date, renewal=renewal(world, identity))


_UNREACHED: Final = "let the pod reach the authority: check its network policies, proxy and DNS"


@of_identity(Stage.SIGN_IN, Part.REPORTS, Part.CONTROL_PLANES)
def sign_in(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the probe's last sign-in with the mounted credential worked."""
    for _, pod, report in reports_of(world, identity):
        error = report.sign_in.error
        if report.sign_in.ok or not (error or report.expires):
            continue
        symptom = find(error or "", Family.ENTRA_ID)
        fix = of_symptom(world, identity, symptom) if symptom else _UNREACHED
        yield Fault(evidence=f"{pod.name}: {error or 'it has not signed in yet'}", fix=fix)


@of_identity(Stage.APPLICATIONS, Part.APPLICATIONS)
def added_credentials(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the identity's application has only the credentials that the stack gave it."""
    application = entry(world.applications, identity.client_id) if identity.generation is not None else None
    if application is not None and application.added:
        yield fault(world, "added credentials", client=identity.client_id, added="; ".join(application.added))


@of_principal(Stage.PROOF_CALL, Part.ROLES)
def role(world: StackWorld, identity: GrantedPrincipal) -> Iterator[Fault]:
    """Whether ARM has the identity's role assignments as the stack created them."""
    for role in identity.roles:
        if evidence := role_fault(world, role):
            yield Fault(evidence=evidence, fix=world.repair)


# Types with a place of their own, or without any: a cluster without a route table needs no action on one.
_OF_THE_NETWORK: Final = tuple(
    f"microsoft.network/{type_}/"
    for type_ in ("virtualnetworks", "networksecuritygroups", "routetables", "natgateways", "dnszones")
)
Action = tuple[str, str]  # as ARM writes it, and the member of a permission that grants it


@of_principal(Stage.PROOF_CALL, Part.ROLES)
def actions(world: StackWorld, identity: GrantedPrincipal) -> Iterator[Fault]:
    """Whether the identity has the actions of production's role at each resource, by all its roles there and above.

    A custom role may lack an action of the built-in role, and so may an assignment that another tool replaced. Deny
    assignments are not read.
    """
    if not identity.accesses:
        return
    needed, guid = entry(world.definitions, identity.role_guid), identity.role_guid
    if needed is None:
        raise NotReadError(f"the role {guid} with its actions does not exist in this cloud")
    types = {access.type for access in identity.accesses}
    actions: dict[str | None, list[Action]] = {}
    for permission in needed.permissions:
        for member in EXCEPTIONS:
            for name in permission[member]:
                actions.setdefault(_place(name.lower(), types), []).append((name, member))
    for access in identity.accesses:
        found = (entry(world.definitions, assignment.role) for assignment in entry(world.assignments, access.key))
        roles = [definition for definition in found if definition is not None]
        missing = [action for action in actions.get(access.type, ()) if not _grants(roles, action)]
        if missing:
            names = ", ".join(f"{name} (data)" if member == "dataActions" else name for name, member in missing)
            held = ", ".join(dict.fromkeys(f'"{role.name}"' for role in roles)) or "none"
            lacking = {"principal": access.principal_id, "actions": names, "scope": access.scope, "held": held}
            if custom := next((role.name for role in roles if role.is_custom), None):
                yield fault(world, "missing actions of a custom role", custom=custom, role=guid, **lacking)
            else:
                yield fault(world, "missing actions", **lacking)


def _place(action: str, types: Iterable[str]) -> str | None:
    """The resource type of the places that need an action: its own or a parent type, empty for all other places."""
    if matching := [type_ for type_ in types if type_ and action.startswith(f"{type_.lower()}/")]:
        return max(matching, key=len)
    return None if action.startswith(_OF_THE_NETWORK) else ""


def _grants(roles: Iterable[SeenRoleDefinition], action: Action) -> bool:
    """Whether a role grants an action; exceptions hold in their own entry alone (azure-docs `role-definitions.md`)."""
    name, member = action
    return any(
        _matches(permission[member], name) and not _matches(permission[EXCEPTIONS[member]], name)
        for role in roles
        for permission in role.permissions
    )


def _matches(patterns: Iterable[str], action: str) -> bool:
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)


@of_identity(Stage.PROOF_CALL, Part.REPORTS, Part.CONTROL_PLANES)
def proof_call(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the probe's last call, which only the identity's own role grants, was granted."""
    for _, pod, report in reports_of(world, identity):
        if report.proof.ok or not report.sign_in.ok:
            continue
        error = " ".join((report.proof.error or "it has not called yet").split())
        action = report.proof.action or "the proof call"
        match report.proof.status:
            case HTTPStatus.FORBIDDEN:
                yield fault(world, "denied proof call", pod=pod.name, action=action, error=error)
            case HTTPStatus.NOT_FOUND:
                yield fault(world, "proof call without a resource", pod=pod.name, action=action, error=error)
            case _:
                yield fault(world, "failed proof call", pod=pod.name, action=action, error=error)
