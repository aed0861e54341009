"""Reads a stack's resources from ARM and Graph, with the role Reader; applications need a permission in Graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, TypeAlias, TypeVar

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.errors import AzureRefusedError
from identity.azure.records import (
    FederatedCredentialRecord,
    ManagedIdentityRecord,
    RoleAssignmentRecord,
    SecretMetadata,
)
from identity.azure.registered_certificates import registered
from identity.catalogue import FEDERATED_AUDIENCE, OPTIONAL, WORKLOAD
from identity.catalogue_rows import DataPlaneIdentity, FederatedSubject, OptionalManagedIdentity
from identity.credentials.openid_documents import UnusableIssuerError, keys_of_issuer
from identity.naming import parse_arm_id, secret_id
from identity.outputs import ManagedIdentityOutput, StackOutputs
from identity.secrets_store import ADD_ON
from ops.world.expected import StackState, VaultRecord
from ops.world.seen import (
    EXCEPTIONS,
    NOT_READ,
    AzureView,
    Part,
    SeenApplication,
    SeenIssuer,
    SeenManagedIdentity,
    SeenRoleDefinition,
    Unread,
    attempt,
)

# ARM refills 25 reads a second for each subscription and caller (request-limits-and-throttling, 2024).
_MAX_WORKERS: Final = 8
T = TypeVar("T")


def read_azure(azure: AzureClient | Unread, state: StackState, parts: Collection[Part]) -> AzureView:
    """Read these parts; each refused one is unread, and all of them without a client."""
    accesses = {access.key: access for principal in state.principals for access in principal.accesses}
    of_principals = (role for principal in state.principals for role in principal.roles)
    of_secrets = (role for identity in state.identities for role in identity.reader_roles)
    issuers = (guest.issuer.address for guest in state.guests if guest.issuer is not None)

    def attempted(read: Callable[[AzureClient], T]) -> T | Unread:
        return azure if isinstance(azure, Unread) else attempt(partial(read, azure))

    def assignments(client: AzureClient, key: str) -> tuple[RoleAssignmentRecord, ...]:
        access = accesses[key]
        # Includes those of the principal's groups (azure-docs `role-assignments-list-rest`).
        condition = f"atScope() and assignedTo('{access.principal_id}')"
        return tuple(role_assignments_at(client, access.scope, condition))

    with ThreadPoolExecutor(_MAX_WORKERS) as pool:

        def by_key(part: Part, keys: Iterable[str], read: Callable[[AzureClient, str], T]) -> dict[str, T | Unread]:
            chosen = list(dict.fromkeys(keys)) if part in parts else []
            answers = pool.map(lambda key: attempted(lambda client: read(client, key)), chosen)
            return dict(zip(chosen, answers, strict=True))

        assignments_by_key = by_key(Part.ROLES, accesses, assignments)
        scopes = {
            principal.role_guid: principal.accesses[0].scope for principal in state.principals if principal.accesses
        }
        for key, held in assignments_by_key.items():
            scopes |= {} if isinstance(held, Unread) else {role.role: accesses[key].scope for role in held}
        return AzureView(
            vault=attempted(lambda client: _vault(client, state)) if Part.VAULT in parts and state.is_up else NOT_READ,
            add_on=attempted(lambda client: _add_on(client, state)) if Part.ADD_ON in parts else NOT_READ,
            secrets=by_key(
                Part.SECRETS,
                (identity.secret for identity in state.identities),
                lambda client, name: read_vault_secret(client, state.vault_id, name),
            ),
            roles=by_key(
                Part.ROLES,
                (role.id for role in (*state.reader_roles, *of_principals, *of_secrets)),
                read_role_assignment,
            ),
            assignments=assignments_by_key,
            definitions=by_key(Part.ROLES, scopes, lambda client, guid: role_definition(client, scopes[guid], guid)),
            applications=by_key(
                Part.APPLICATIONS,
                (identity.client_id for identity in state.identities if identity.generation is not None),
                _application,
            ),
            issuers=by_key(Part.ISSUERS, issuers, read_issuer),
            managed_identities=by_key(
                Part.MANAGED_IDENTITIES,
                (
                    *(guest.resource_id for guest in state.guests if guest.resource_id),
                    *(resource_id for cluster in state.clusters for resource_id in cluster.listed),
                ),
                read_seen_identity,
            ),
        )


def _vault(azure: AzureClient, state: StackState) -> VaultRecord | None:
    resource = azure.resource(state.vault_id, resource_types.KEY_VAULT_API) if state.vault_id else None
    return None if resource is None else VaultRecord.of(resource)


def _add_on(azure: AzureClient, state: StackState) -> Mapping[str, Any] | None:
    cluster = state.management_cluster
    resource = azure.resource(cluster, resource_types.CONTAINER_SERVICE_API) if cluster is not None else None
    if resource is None:
        return None
    profile = (resource["properties"].get("addonProfiles") or {}).get(ADD_ON) or {}
    return {key: profile[key] for key in ("enabled", "config") if key in profile}


def _application(azure: AzureClient, client_id: str) -> SeenApplication | None:
    condition = f"appId eq '{client_id}'"
    applications = azure.directory_objects("/applications", condition)
    if not applications:
        return None
    principal = next(iter(azure.directory_objects("/servicePrincipals", condition)), None)
    return SeenApplication(
        certificates={found.thumbprint: found.ends for found in registered(applications[0]) if found.thumbprint},
        is_enabled=None if principal is None else bool(principal.get("accountEnabled", True)),
        added=tuple(map(str, added_credentials(azure, applications[0], principal))),
    )


# Between an application and a key id in azuread's ids.
CERTIFICATE: Final = "/certificate/"
_FEDERATED: Final = "federatedIdentityCredentials"
CLIENT_SECRET: Final = "client secret"


@dataclass(frozen=True)
class AddedCredential:
    """A credential that this program did not add: its kind, its path in Graph, its name, and who signs in with it."""

    kind: str
    path: str
    name: str
    trusts: str = ""

    @property
    def id(self) -> str:
        """Its key id, or that of a federated credential."""
        return self.path.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.id}){self.trusts}"


def added_credentials(
    azure: AzureClient, application: AzureObject, principal: AzureObject | None
) -> Iterator[AddedCredential]:
    """The foreign credentials of an application and its service principal, as objects of Graph; one request.

    Raises AzureRefusedError.
    """
    path, owner = f"/applications/{application['id']}", application["displayName"]
    yield from _keys(path, owner, application)
    for found in (azure.directory_object(f"{path}/{_FEDERATED}") or {}).get("value", ()):
        trusts = f", for {found.get('subject')} of {found.get('issuer')}"
        yield AddedCredential(
            "federated credential", f"{path}/{_FEDERATED}/{found['id']}", f"{found['name']} of {owner}", trusts
        )
    if principal is not None:
        yield from _keys(f"/servicePrincipals/{principal['id']}", f"the service principal of {owner}", principal)


def _keys(path: str, owner: str, holder: AzureObject) -> Iterator[AddedCredential]:
    for key in registered(holder):
        # An application's own are this program's; a service principal has none of it.
        if not key.is_ours or path.startswith("/servicePrincipals"):
            name = key.thumbprint or key.key_id
            yield AddedCredential("registered certificate", f"{path}{CERTIFICATE}{key.key_id}", f"{name} of {owner}")
    for password in holder.get("passwordCredentials") or ():
        name = password.get("displayName") or password["keyId"]
        yield AddedCredential(CLIENT_SECRET, f"{path}/password/{password['keyId']}", f"{name} of {owner}")


def read_issuer(azure: AzureClient, address: str) -> SeenIssuer:
    """Read both documents without a credential, as Entra ID does.

    Raises AzureRefusedError without an answer, or for a server error: Entra ID may reach the issuer nevertheless.
    """
    try:
        return SeenIssuer(keys=tuple(sorted(keys_of_issuer(azure.public_document, address))))
    except UnusableIssuerError as error:
        return SeenIssuer(keys=(), problem=str(error))
    except AzureRefusedError as error:
        if error.status is None or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return SeenIssuer(keys=(), problem=" ".join(str(error).split()))


def read_seen_identity(azure: AzureClient, resource_id: str) -> SeenManagedIdentity | None:
    """An identity by its ARM id; None without one. Raises AzureRefusedError."""
    resource = azure.resource(resource_id, resource_types.MANAGED_IDENTITY_API)
    if resource is None:
        return None
    credentials = tuple(federated_credentials(azure, resource_id))
    return SeenManagedIdentity(client_id=ManagedIdentityRecord.of(resource).client_id, credentials=credentials)


_ASSIGNMENT_TYPE: Final = "providers/Microsoft.Authorization/roleAssignments"
_DEFINITIONS: Final = "providers/Microsoft.Authorization/roleDefinitions"


def read_role_assignment(azure: AzureClient, id: str) -> RoleAssignmentRecord | None:
    """An assignment by its ARM id; None without one. Raises AzureRefusedError."""
    resource = azure.resource(id, resource_types.AUTHORIZATION_API)
    return None if resource is None else RoleAssignmentRecord.of(resource)


def named_role_assignments(azure: AzureClient, scope: str, name: str) -> RoleAssignmentRecord | None:
    """An assignment by its name at a scope; None without one. Raises AzureRefusedError."""
    return read_role_assignment(azure, f"{scope}/{_ASSIGNMENT_TYPE}/{name}")


def role_assignments_at(azure: AzureClient, scope: str, condition: str | None = None) -> list[RoleAssignmentRecord]:
    """The assignments at a scope, above and below it that match an OData filter. Raises AzureRefusedError."""
    resources = azure.resources(f"{scope}/{_ASSIGNMENT_TYPE}", resource_types.AUTHORIZATION_API, condition)
    return [RoleAssignmentRecord.of(resource) for resource in resources]


def role_definition(azure: AzureClient, scope: str, guid: str) -> SeenRoleDefinition | None:
    """A definition by its GUID, at a scope where the caller has a role; None without one. Raises AzureRefusedError."""
    resource = azure.resource(f"{scope}/{_DEFINITIONS}/{guid}", resource_types.AUTHORIZATION_API)
    if resource is None:
        return None
    properties = resource["properties"]
    return SeenRoleDefinition(
        name=properties["roleName"],
        is_custom=properties.get("type") == "CustomRole",
        permissions=tuple(
            {key: tuple(permission.get(key) or ()) for pair in EXCEPTIONS.items() for key in pair}
            for permission in properties["permissions"]
        ),
    )


def read_vault_secrets(azure: AzureClient, vault_id: str) -> list[SecretMetadata]:
    """Every secret, each in a separate request, as ARM's list may have no tags (docs/decisions/0038).

    Leaves out secrets that are deleted meanwhile. Raises AzureRefusedError.
    """
    names = [str(resource["name"]) for resource in azure.resources(f"{vault_id}/secrets", resource_types.KEY_VAULT_API)]
    with ThreadPoolExecutor(_MAX_WORKERS) as pool:
        secrets = pool.map(lambda name: read_vault_secret(azure, vault_id, name), names)
        return [secret for secret in secrets if secret is not None]


def read_vault_secret(azure: AzureClient, vault_id: str, name: str) -> SecretMetadata | None:
    """A secret by its name; None without one. Raises AzureRefusedError."""
    resource = azure.resource(secret_id(vault_id, name), resource_types.KEY_VAULT_API)
    return None if resource is None else SecretMetadata.of(resource)


_IDENTITY_TYPE: Final = "providers/Microsoft.ManagedIdentity/userAssignedIdentities"


def managed_identities_within(azure: AzureClient, scope: str) -> list[ManagedIdentityRecord]:
    """The identities in a subscription or a resource group (its ARM id). Raises AzureRefusedError."""
    resources = azure.resources(f"{scope}/{_IDENTITY_TYPE}", resource_types.MANAGED_IDENTITY_API)
    return [ManagedIdentityRecord.of(resource) for resource in resources]


def federated_credentials(azure: AzureClient, id: str) -> list[FederatedCredentialRecord]:
    """The federated credentials of an identity, by its ARM id. Raises AzureRefusedError."""
    resources = azure.resources(f"{id}/federatedIdentityCredentials", resource_types.MANAGED_IDENTITY_API)
    return [FederatedCredentialRecord.of(resource) for resource in resources]


# `replaced`: one of the same name with another client id, for which the stack has no role assignment.
State: TypeAlias = Literal["exists", "missing", "replaced", "not known"]

_ROWS: Final[tuple[OptionalManagedIdentity | DataPlaneIdentity, ...]] = (*OPTIONAL, *WORKLOAD)


@dataclass(frozen=True)
class FederatedCredential:
    """A service account that may use an identity, and the state of its federated credential."""

    name: str  # unique for the identity
    subject: str
    state: State


@dataclass(frozen=True)
class ManagedIdentityRow:
    """One managed identity of one hosted cluster; `role` has Azure's display names of its roles."""

    cluster: str
    identity: str
    client_id: str
    resource_id: str
    role: str
    state: State
    federated: tuple[FederatedCredential, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether the identity or a federated credential is missing or replaced; an unread one is not wrong."""
        return any(
            state in ("missing", "replaced")
            for state in (self.state, *(credential.state for credential in self.federated))
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "identity": self.identity,
            "kind": "managed-identity",
            "clientID": self.client_id,
            "resourceID": self.resource_id,
            "role": self.role,
            "state": self.state,
            "federatedCredentials": [
                {"subject": credential.subject, "state": credential.state} for credential in self.federated
            ],
        }


@dataclass(frozen=True)
class ManagedIdentities:
    """A row for each such managed identity; `unread` has the reason for each one that could not be read."""

    rows: tuple[ManagedIdentityRow, ...] = ()
    unread: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"rows": [row.to_json() for row in self.rows], "unread": list(self.unread)}


def compare_managed_identities(
    seen: Mapping[str, SeenManagedIdentity | Unread | None], outputs: StackOutputs[str]
) -> ManagedIdentities:
    """The managed identities of the outputs, in the catalogue's order; `seen` has those that were read, by ARM id."""
    unread: list[str] = []
    rows: list[ManagedIdentityRow] = []
    for cluster, described in outputs.get("hostedClusters", {}).items():
        issuer = described.get("hostedClusterSpec", {}).get("issuerURL", "")
        for row in _ROWS:
            if (output := described.get("managedIdentities", {}).get(row.field)) is not None:
                managed = seen.get(output["resourceID"], NOT_READ)
                if isinstance(managed, Unread) and managed is not NOT_READ:
                    unread.append(f"{row.field} of {cluster}: {managed.why}")
                rows.append(_row(cluster, row, output, issuer, managed))
    return ManagedIdentities(tuple(rows), tuple(unread))


def _row(
    cluster: str,
    row: OptionalManagedIdentity | DataPlaneIdentity,
    output: ManagedIdentityOutput[str],
    issuer: str,
    managed: SeenManagedIdentity | Unread | None,
) -> ManagedIdentityRow:
    client_id, resource_id = output["clientID"], output["resourceID"]
    state: State = "not known" if isinstance(managed, Unread) else "missing"
    if isinstance(managed, SeenManagedIdentity):
        state = "exists" if managed.client_id == client_id else "replaced"
    if isinstance(row, OptionalManagedIdentity):
        roles = ", ".join(grant.role.name for grant in row.grants)
    else:
        roles = " or ".join(dict.fromkeys(grant.role.name for grant in (row.hypershift, row.builtin)))

    def credential(subject: FederatedSubject) -> State:
        """The state of an optional identity's federated credential by its name, of a workload identity's by its trust.

        Adopted credentials of workload identities have names of their own. One with another service account, issuer or
        audience is `replaced`: Entra ID compares all three.
        """
        if not isinstance(managed, SeenManagedIdentity):
            return state
        if isinstance(row, OptionalManagedIdentity):
            name = f"{parse_arm_id(resource_id).name}-{subject.suffix}"
            known = [found.subject for found in managed.credentials if found.name == name]
            fits = subject.subject in known
        else:
            known = [found.subject for found in managed.credentials if found.subject == subject.subject]
            fits = managed.trusts(issuer, subject.subject, FEDERATED_AUDIENCE)
        return "exists" if fits else "replaced" if known else "missing"

    federated = (FederatedCredential(subject.word, subject.subject, credential(subject)) for subject in row.subjects)
    return ManagedIdentityRow(cluster, row.field, client_id, resource_id, roles, state, tuple(federated))
