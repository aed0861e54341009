"""Reads a stack's resources from ARM and Graph, with the role Reader; applications need a permission in Graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.records import RoleAssignmentRecord
from identity.azure.registered_certificates import registered
from identity.secrets_store import ADD_ON
from ops.world import role_assignments, vault_secrets
from ops.world.expected import ExpectedAccess, StackState
from ops.world.federation import read_issuer, read_managed_identity
from ops.world.parts import Part
from ops.world.seen import NOT_READ, Unread, attempt
from ops.world.stack_world import AzureView, SeenAddOn, SeenApplication, SeenRoleDefinition, SeenVault

_MAX_WORKERS: Final = 8
T = TypeVar("T")


def unread_azure(why: Unread, state: StackState) -> AzureView:
    """The view without any answer of Azure."""
    return AzureView(
        vault=why,
        secrets=dict.fromkeys(_secrets(state), why),
        add_on=why,
        applications=dict.fromkeys(_applications(state), why),
        roles=dict.fromkeys(_roles(state), why),
        assignments=dict.fromkeys(_accesses(state), why),
        issuers=dict.fromkeys(_issuers(state), why),
        managed_identities=dict.fromkeys(_managed_identities(state), why),
    )


def read_azure(azure: AzureClient, state: StackState, parts: Collection[Part]) -> AzureView:
    """Read these parts; each refused one is unread."""

    def vault() -> SeenVault | None:
        if not state.vault_id:
            return None
        resource = azure.resource(state.vault_id, resource_types.KEY_VAULT_API)
        return None if resource is None else _vault(resource["properties"])

    def add_on() -> SeenAddOn | None:
        if state.management_cluster is None:
            return None
        resource = azure.resource(state.management_cluster, resource_types.CONTAINER_SERVICE_API)
        return None if resource is None else _add_on(resource["properties"])

    def assignments(key: str) -> tuple[RoleAssignmentRecord, ...]:
        access = accesses[key]
        # Includes those of the principal's groups (azure-docs `role-assignments-list-rest`).
        condition = f"atScope() and assignedTo('{access.principal_id}')"
        return tuple(role_assignments.at(azure, access.scope, condition))

    def definition(guid: str) -> SeenRoleDefinition | None:
        return role_assignments.definition(azure, scopes[guid], guid)

    def application(client_id: str) -> SeenApplication | None:
        condition = f"appId eq '{client_id}'"
        applications = azure.directory_objects("/applications", condition)
        if not applications:
            return None
        return _application(applications[0], azure.directory_objects("/servicePrincipals", condition))

    accesses = _accesses(state)
    with ThreadPoolExecutor(_MAX_WORKERS) as pool:

        def by_key(part: Part, keys: Iterable[str], read: Callable[[str], T]) -> dict[str, T | Unread]:
            chosen = list(keys) if part in parts else []
            return dict(zip(chosen, pool.map(lambda key: attempt(lambda: read(key)), chosen), strict=True))

        assignments_by_key = by_key(Part.ROLES, accesses, assignments)
        scopes = {
            principal.role_guid: principal.accesses[0].scope for principal in state.principals if principal.accesses
        }
        for key, held in assignments_by_key.items():
            scopes |= {} if isinstance(held, Unread) else {role.role: accesses[key].scope for role in held}
        return AzureView(
            vault=attempt(vault) if Part.VAULT in parts and state.is_up else NOT_READ,
            add_on=attempt(add_on) if Part.ADD_ON in parts else NOT_READ,
            secrets=by_key(Part.SECRETS, _secrets(state), partial(vault_secrets.read_one, azure, state.vault_id)),
            roles=by_key(Part.ROLES, _roles(state), partial(role_assignments.read, azure)),
            assignments=assignments_by_key,
            definitions=by_key(Part.ROLES, scopes, definition),
            applications=by_key(Part.APPLICATIONS, _applications(state), application),
            issuers=by_key(Part.ISSUERS, _issuers(state), partial(read_issuer, azure)),
            managed_identities=by_key(
                Part.MANAGED_IDENTITIES, _managed_identities(state), partial(read_managed_identity, azure)
            ),
        )


def _secrets(state: StackState) -> list[str]:
    return [identity.secret for identity in state.identities]


def _roles(state: StackState) -> list[str]:
    of_principals = (role for principal in state.principals for role in principal.roles)
    of_secrets = (role for identity in state.identities for role in identity.reader_roles)
    return [role.id for role in (*state.reader_roles, *of_principals, *of_secrets)]


def _accesses(state: StackState) -> dict[str, ExpectedAccess]:
    return {access.key: access for principal in state.principals for access in principal.accesses}


def _applications(state: StackState) -> list[str]:
    return list(dict.fromkeys(identity.client_id for identity in state.identities if identity.generation is not None))


def _issuers(state: StackState) -> list[str]:
    return list(dict.fromkeys(guest.issuer.address for guest in state.guests if guest.issuer is not None))


def _managed_identities(state: StackState) -> list[str]:
    return [guest.resource_id for guest in state.guests if guest.resource_id]


def _vault(properties: AzureObject) -> SeenVault:
    rules = properties.get("networkAcls") or {}
    return SeenVault(
        tenant_id=properties["tenantId"],
        uses_roles=bool(properties.get("enableRbacAuthorization")),
        public_network_access=properties.get("publicNetworkAccess") or "Enabled",
        default_action=rules.get("defaultAction") or "Allow",
    )


def _add_on(properties: AzureObject) -> SeenAddOn:
    profile = (properties.get("addonProfiles") or {}).get(ADD_ON) or {}
    return SeenAddOn(is_enabled=bool(profile.get("enabled")), config=profile.get("config") or {})


def _application(application: AzureObject, principals: list[AzureObject]) -> SeenApplication:
    return SeenApplication(
        certificates={
            certificate.thumbprint: certificate.ends
            for certificate in registered(application)
            if certificate.thumbprint
        },
        is_enabled=bool(principals[0].get("accountEnabled", True)) if principals else None,
    )
