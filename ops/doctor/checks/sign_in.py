"""Whether the identity, and nobody else, signs in to Entra ID, has its rights, and uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from identity.credentials import rfc3339
from identity.credentials.symptom import Family
from identity.credentials.symptoms import find
from ops.doctor.checks.check import Fault, Stage, of_identity, of_principal, of_symptom, renewal, reports_of, role_fault
from ops.world.expected import ExpectedAccess, GrantedPrincipal, Identity
from ops.world.seen import NotReadError, Part, SeenRoleDefinition, StackWorld, entry


@of_identity(Stage.SIGN_IN, Part.APPLICATIONS)
def registration(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether Entra ID has the application, enabled, with the certificate that the stack delivered."""
    if identity.generation is None:
        return  # a managed identity: Azure keeps its certificates, which are not readable
    client, application = identity.client_id, entry(world.applications, identity.client_id)
    rotate = ("rotate", "--identity", f"{identity.cluster}/{identity.identity}")
    if application is None:
        yield Fault(
            evidence=f"Entra ID has no application with the client id {client}",
            fix=f"{world.command('recover')} creates another one, with a new credential and its roles",
        )
        return
    if application.is_enabled is None:
        yield Fault(evidence=f"the application {client} has no service principal", fix=world.repair)
    elif not application.is_enabled:
        yield Fault(
            evidence=f"the service principal of {client} is disabled",
            fix=f"`az ad sp update --id {client} --set accountEnabled=true`",
        )
    elif identity.thumbprint is not None and identity.thumbprint not in application.certificates:
        yield Fault(
            evidence=f"the certificate {identity.thumbprint} is not registered on the application {client}",
            # It may have been removed after a leak, and the vault still has its key.
            fix=f"if it was removed because its key leaked, {world.command(*rotate, '--revoke', '--now')}; otherwise "
            f"{world.command(*rotate, '--register')}",
        )
    elif identity.thumbprint is not None and (end := application.certificates[identity.thumbprint]) <= world.now:
        yield Fault(
            evidence=f"the registration of {identity.thumbprint} ended at {rfc3339.render(end)}",
            fix=renewal(world, identity),
        )


_UNREACHED: Final = "let the pod reach the authority: check its network policies, proxy and DNS"


@of_identity(Stage.SIGN_IN, Part.REPORTS, Part.CONTROL_PLANES)
def sign_in(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the probe's last sign-in with the mounted credential worked."""
    for _, pod, report in reports_of(world, identity):
        error = report.sign_in.error
        if report.sign_in.ok or not (error or report.expires):
            continue
        symptom = find(error or "", Family.ENTRA_ID)
        yield Fault(
            evidence=f"{pod.name}: {error or 'it has not signed in yet'}",
            fix=of_symptom(world, identity, symptom) if symptom else _UNREACHED,
        )


@of_identity(Stage.APPLICATIONS, Part.APPLICATIONS)
def added_credentials(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the identity's application has only the credentials that the stack gave it."""
    application = entry(world.applications, identity.client_id) if identity.generation is not None else None
    if application is not None and application.added:
        yield Fault(
            evidence=f"somebody added to the application {identity.client_id}: {'; '.join(application.added)}",
            fix=f"if it is not meant to be there, remove it: `az ad app credential delete --id {identity.client_id} "
            "--key-id <id>`, `az ad app federated-credential delete` for a federated credential",
        )


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
Action = tuple[str, bool]  # as ARM writes it, and whether it is a data action


@of_principal(Stage.PROOF_CALL, Part.ROLES)
def actions(world: StackWorld, identity: GrantedPrincipal) -> Iterator[Fault]:
    """Whether the identity has the actions of production's role at each resource, by all its roles there and above.

    A custom role may lack an action of the built-in role, and so may an assignment that another tool replaced. Deny
    assignments are not read.
    """
    if not identity.accesses:
        return
    needed = entry(world.definitions, identity.role_guid)
    if needed is None:
        raise NotReadError(f"the role {identity.role_guid} with its actions does not exist in this cloud")
    types = {access.type for access in identity.accesses}
    actions: dict[str | None, list[Action]] = {}
    for permission in needed.permissions:
        for is_data, granted in ((False, permission.actions), (True, permission.data_actions)):
            for name in granted:
                actions.setdefault(_place(name.lower(), types), []).append((name, is_data))
    for access in identity.accesses:
        found = (entry(world.definitions, assignment.role) for assignment in entry(world.assignments, access.key))
        roles = [definition for definition in found if definition is not None]
        missing = [action for action in actions.get(access.type, ()) if not _grants(roles, action)]
        if missing:
            names = ", ".join(f"{name} (data)" if is_data else name for name, is_data in missing)
            held = ", ".join(dict.fromkeys(f'"{role.name}"' for role in roles)) or "none"
            yield Fault(
                evidence=f"the principal {access.principal_id} lacks {names} at {access.scope}; its roles there and "
                f"above: {held}",
                fix=_fix(world, identity, access, roles),
            )


def _place(action: str, types: Iterable[str]) -> str | None:
    """The resource type of the places that need an action: its own or a parent type, empty for all other places."""
    if matching := [type_ for type_ in types if type_ and action.startswith(f"{type_.lower()}/")]:
        return max(matching, key=len)
    return None if action.startswith(_OF_THE_NETWORK) else ""


def _grants(roles: Iterable[SeenRoleDefinition], action: Action) -> bool:
    """Whether a role grants an action; exceptions hold in their own entry alone (azure-docs `role-definitions.md`)."""
    name, is_data = action
    pairs = (
        (permission.data_actions, permission.data_exceptions)
        if is_data
        else (permission.actions, permission.exceptions)
        for role in roles
        for permission in role.permissions
    )
    return any(_matches(granted, name) and not _matches(taken, name) for granted, taken in pairs)


def _matches(patterns: Iterable[str], action: str) -> bool:
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)


def _fix(world: StackWorld, identity: GrantedPrincipal, access: ExpectedAccess, roles: list[SeenRoleDefinition]) -> str:
    custom = next((role.name for role in roles if role.is_custom), None)
    if custom is None:
        return f"{world.repair}; Azure takes up to ten minutes to apply a role"
    return (
        f'put the actions back into the custom role: `az role definition list --name "{custom}"` prints it, and '
        f"`az role definition update --role-definition <file>` writes it; or assign production's role beside "
        f"it: `az role assignment create --role {identity.role_guid} --assignee-object-id {access.principal_id} "
        f"--assignee-principal-type ServicePrincipal --scope {access.scope}`"
    )


_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404


@of_identity(Stage.PROOF_CALL, Part.REPORTS, Part.CONTROL_PLANES)
def proof_call(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the probe's last call, which only the identity's own role grants, was granted."""
    for _, pod, report in reports_of(world, identity):
        if report.proof.ok or not report.sign_in.ok:
            continue
        error = " ".join((report.proof.error or "it has not called yet").split())
        if report.proof.status == _FORBIDDEN:
            fix = "the roles exist: wait ten minutes for Azure, then check for a deny assignment or a network rule"
        elif report.proof.status == _NOT_FOUND:
            fix = f"the resource does not exist: correct the hosted cluster's configuration, then {world.command('up')}"
        else:
            fix = "let the pod reach the service: check its network policies, proxy and DNS"
        yield Fault(evidence=f"{pod.name}: {report.proof.action or 'the proof call'}: {error}", fix=fix)
