"""What ARM and Graph show of a stack: to a Reader, but for the applications."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from identity import resource_types
from identity.access.azure_client import AzureClient, AzureObject
from identity.access.records import RoleAssignmentRecord, SecretMetadata
from identity.access.registered_certificates import registered
from identity.secrets_store import ADD_ON
from ops.world import role_assignments, vault_secrets
from ops.world.expected import ExpectedAccess, StackState
from ops.world.federation import read_issuer, read_managed_identity
from ops.world.parts import Part
from ops.world.seen import Unread, attempt
from ops.world.stack_world import (
    SeenAddOn,
    SeenApplication,
    SeenIssuer,
    SeenManagedIdentity,
    SeenPermission,
    SeenRoleDefinition,
    SeenVault,
)

_DEFINITIONS: Final = "providers/Microsoft.Authorization/roleDefinitions"
_AT_ONCE: Final = 8
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class AzureView:
    """The parts of a world that are Azure's."""

    vault: SeenVault | Unread | None
    secrets: Mapping[str, SecretMetadata | Unread | None]
    add_on: SeenAddOn | Unread | None
    applications: Mapping[str, SeenApplication | Unread | None]
    roles: Mapping[str, RoleAssignmentRecord | Unread | None] = field(default_factory=dict)
    assignments: Mapping[str, tuple[RoleAssignmentRecord, ...] | Unread] = field(default_factory=dict)
    definitions: Mapping[str, SeenRoleDefinition | Unread | None] = field(default_factory=dict)
    issuers: Mapping[str, SeenIssuer | Unread] = field(default_factory=dict)
    managed_identities: Mapping[str, SeenManagedIdentity | Unread | None] = field(default_factory=dict)


def unseen(why: Unread, state: StackState) -> AzureView:
    """The view of somebody to whom Azure does not answer at all."""
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
    """The wanted parts; what is refused is unread, each for itself."""

    def vault() -> SeenVault | None:
        if not state.vault_id:
            return None
        found = azure.resource(state.vault_id, resource_types.KEY_VAULT_API)
        return None if found is None else _vault(found["properties"])

    def secret(name: str) -> SecretMetadata | None:
        return vault_secrets.read_one(azure, state.vault_id, name)

    def add_on() -> SeenAddOn | None:
        if state.management_cluster is None:
            return None
        found = azure.resource(state.management_cluster, resource_types.CONTAINER_SERVICE_API)
        return None if found is None else _add_on(found["properties"])

    def role(assignment: str) -> RoleAssignmentRecord | None:
        return role_assignments.read(azure, assignment)

    def assignments(key: str) -> tuple[RoleAssignmentRecord, ...]:
        access = accesses[key]
        # With those of the groups that the principal is in (azure-docs `role-assignments-list-rest`).
        condition = f"atScope() and assignedTo('{access.principal_id}')"
        return tuple(role_assignments.at(azure, access.scope, condition))

    def definition(guid: str) -> SeenRoleDefinition | None:
        # At a scope where the reader has a role, and not at the subscription.
        found = azure.resource(f"{scopes[guid]}/{_DEFINITIONS}/{guid}", resource_types.AUTHORIZATION_API)
        return None if found is None else _definition(found["properties"])

    def application(client_id: str) -> SeenApplication | None:
        condition = f"appId eq '{client_id}'"
        found = azure.directory_objects("/applications", condition)
        if not found:
            return None
        return _application(found[0], azure.directory_objects("/servicePrincipals", condition))

    accesses = _accesses(state)
    with ThreadPoolExecutor(_AT_ONCE) as pool:

        def each(part: Part, keys: Iterable[str], read: Callable[[str], T]) -> dict[str, T | Unread]:
            wanted = list(keys) if part in parts else []
            return dict(zip(wanted, pool.map(lambda key: attempt(lambda: read(key)), wanted), strict=True))

        seen = each(Part.ROLES, accesses, assignments)
        scopes = {one.role_guid: one.accesses[0].scope for one in state.principals if one.accesses}
        for key, held in seen.items():
            scopes |= {} if isinstance(held, Unread) else {role.role: accesses[key].scope for role in held}
        return AzureView(
            vault=attempt(vault) if Part.VAULT in parts and state.is_up else Unread("it was not looked for"),
            add_on=attempt(add_on) if Part.ADD_ON in parts else Unread("it was not looked for"),
            secrets=each(Part.SECRETS, _secrets(state), secret),
            roles=each(Part.ROLES, _roles(state), role),
            assignments=seen,
            definitions=each(Part.ROLES, scopes, definition),
            applications=each(Part.APPLICATIONS, _applications(state), application),
            issuers=each(Part.ISSUERS, _issuers(state), partial(read_issuer, azure)),
            managed_identities=each(
                Part.MANAGED_IDENTITIES, _managed_identities(state), partial(read_managed_identity, azure)
            ),
        )


def _secrets(state: StackState) -> list[str]:
    return [each.secret for each in state.identities]


def _roles(state: StackState) -> list[str]:
    of_principals = (role for each in state.principals for role in each.roles)
    of_secrets = (role for each in state.identities for role in each.reader_roles)
    return [role.id for role in (*state.reader_roles, *of_principals, *of_secrets)]


def _accesses(state: StackState) -> dict[str, ExpectedAccess]:
    return {each.key: each for principal in state.principals for each in principal.accesses}


def _applications(state: StackState) -> list[str]:
    return list(dict.fromkeys(each.client_id for each in state.identities if each.generation is not None))


def _issuers(state: StackState) -> list[str]:
    return list(dict.fromkeys(each.issuer.address for each in state.guests if each.issuer is not None))


def _managed_identities(state: StackState) -> list[str]:
    return [each.resource_id for each in state.guests if each.resource_id]


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


def _definition(properties: AzureObject) -> SeenRoleDefinition:
    return SeenRoleDefinition(
        name=properties["roleName"],
        is_custom=properties.get("type") == "CustomRole",
        permissions=tuple(
            SeenPermission(
                actions=tuple(each.get("actions") or ()),
                exceptions=tuple(each.get("notActions") or ()),
                data_actions=tuple(each.get("dataActions") or ()),
                data_exceptions=tuple(each.get("notDataActions") or ()),
            )
            for each in properties["permissions"]
        ),
    )


def _application(found: AzureObject, principals: list[AzureObject]) -> SeenApplication:
    return SeenApplication(
        certificates={each.thumbprint: each.ends for each in registered(found) if each.thumbprint},
        is_enabled=bool(principals[0].get("accountEnabled", True)) if principals else None,
    )
