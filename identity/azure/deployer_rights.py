"""The role assignments that an identity needs in Azure to bring a stack up, to preview it or to renew.

The deployer assigns roles, but only those of the catalogue and only to service principals: Role Based Access Control
Administrator under a condition (learn.microsoft.com/azure/role-based-access-control/delegate-role-assignments-examples,
"Constrain roles and principal types"). `idstack rbac --azure` prints it all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.naming import parse_arm_id, resource_group_id, subscription_id
from identity.roles import (
    AKS_CLUSTER_USER_ROLE,
    AKS_RBAC_CLUSTER_ADMIN_ROLE,
    CONTRIBUTOR_ROLE,
    KEY_VAULT_SECRETS_OFFICER_ROLE,
    KEY_VAULT_SECRETS_USER_ROLE,
    MANAGED_IDENTITY_OPERATOR_ROLE,
    NETWORK_CONTRIBUTOR_ROLE,
    RBAC_ADMINISTRATOR_ROLE,
    READER_ROLE,
    STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE,
    Role,
)
from identity.settings import Settings
from identity.settings.scopes import grants_of, outermost, scope_ids

CONDITION_VERSION: Final = "2.0"
_ASSIGNMENTS: Final = "Microsoft.Authorization/roleAssignments"
_ATTRIBUTES: Final = ("RoleDefinitionId", "PrincipalType")


@dataclass(frozen=True)
class AzureGrant:
    """A role at a scope (an ARM id), the reason for it if an identity is to get it; `condition` has version 2.0."""

    role: Role
    scope: str
    reason: str = ""
    condition: str | None = None


def catalogue_roles() -> tuple[Role, ...]:
    """Every role that a stack can assign, sorted by name."""
    grants = [
        *(grant for row in (*CONTROL_PLANE, *DATA_PLANE) for grant in (row.hypershift, row.builtin)),
        *(grant for row in OPTIONAL for grant in row.grants),
    ]
    others = (
        KEY_VAULT_SECRETS_USER_ROLE,
        MANAGED_IDENTITY_OPERATOR_ROLE,
        STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE,
        AKS_RBAC_CLUSTER_ADMIN_ROLE,
    )
    return _sorted([*(grant.role for grant in grants), *others])


def assigned(settings: Settings) -> list[AzureGrant]:
    """The stack's own role assignments, without duplicates, as `components/` makes them."""
    roles = [*_assigned_to_identities(settings), *_assigned_to_deployer(settings)]
    if settings.has_key_vault_user:
        roles.append(AzureGrant(KEY_VAULT_SECRETS_USER_ROLE, settings.group_id(settings.resource_group)))
    return list(dict.fromkeys(roles))


def _assigned_to_identities(settings: Settings) -> Iterator[AzureGrant]:
    own = settings.group_id(settings.resource_group)
    for cluster in settings.hosted_clusters:
        for grant in grants_of(settings, cluster):
            for scope in scope_ids(settings, cluster, grant).values():
                yield AzureGrant(grant.role, scope)
        if any(row.attached_by is not None for row in cluster.optional_rows):
            yield AzureGrant(MANAGED_IDENTITY_OPERATOR_ROLE, own)


def _assigned_to_deployer(settings: Settings) -> Iterator[AzureGrant]:
    own = settings.group_id(settings.resource_group)
    if any(cluster.issuer == "create" for cluster in settings.hosted_clusters):
        yield AzureGrant(STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE, own)
    cluster = settings.management_cluster
    if cluster is not None and cluster.create is not None and cluster.create.azure_rbac:
        yield AzureGrant(AKS_RBAC_CLUSTER_ADMIN_ROLE, settings.group_id(cluster.resource_group))


def condition(written: Iterable[Role], deleted: Iterable[Role], to_people: Collection[Role] = ()) -> str:
    """The condition that limits assignments (`written`) and their deletion (`deleted`) to these roles.

    The principal has to be a service principal, with the roles `to_people` it may be a person.
    """
    clauses = []
    for action, source, roles in (("write", "Request", written), ("delete", "Resource", deleted)):
        role, principal = (f"@{source}[{_ASSIGNMENTS}:{of}] ForAnyOfAnyValues" for of in _ATTRIBUTES)
        limit = f"({role}:GuidEquals {_guids(roles)} AND {principal}:StringEqualsIgnoreCase {{'ServicePrincipal'}})"
        if to_people:
            limit += f" OR ({role}:GuidEquals {_guids(to_people)})"
        clauses.append(f"((!(ActionMatches{{'{_ASSIGNMENTS}/{action}'}})) OR {limit})")
    return " AND ".join(clauses)


def _guids(roles: Iterable[Role]) -> str:
    return f"{{{', '.join(role.guid for role in roles)}}}"


def deployer_grants(settings: Settings, *, to_people: bool = False) -> list[AzureGrant]:
    """What the identity, or a group of people, needs that runs `up` and `down`.

    It may delete assignments of every role of the catalogue: an earlier configuration may have assigned others. The
    condition admits people only for the roles that a deployer gets from the stack itself. It is one condition at a
    scope: Azure refuses a second assignment of one role to one principal there.
    """
    own = settings.group_id(settings.resource_group)
    grants = [
        AzureGrant(CONTRIBUTOR_ROLE, group, "makes what the stack has there") for group in _written_groups(settings)
    ]
    if settings.vault is not None or settings.uses_vault:
        grants.append(
            AzureGrant(KEY_VAULT_SECRETS_OFFICER_ROLE, own, "lists, disables and deletes secrets in the vault")
        )
    assignments = assigned(settings)
    written = _sorted(assignment.role for assignment in assignments)
    deleted = _sorted([*catalogue_roles(), *written])
    own_roles = list(_assigned_to_deployer(settings)) if to_people else []
    scopes = _outermost(assignment.scope for assignment in assignments)
    if _makes_groups(settings):
        scopes = [subscription_id(settings.subscription_id)]
    for scope in scopes:
        people = _sorted(own.role for own in own_roles if f"{own.scope}/".startswith(f"{scope}/"))
        limit = condition(written, deleted, people)
        grants.append(AzureGrant(RBAC_ADMINISTRATOR_ROLE, scope, "assigns the identities' roles", limit))
    cluster = settings.management_cluster
    if cluster is not None and cluster.create is None:  # as Contributor it may do both
        group = settings.group_id(cluster.resource_group)
        grants += [AzureGrant(READER_ROLE, group, "looks up the management cluster"), *_kubeconfig_grants(settings)]
    for subnet in settings.vault.allowed_subnet_ids if settings.vault is not None else ():
        grants.append(AzureGrant(NETWORK_CONTRIBUTOR_ROLE, subnet, "lets the subnet reach the vault (a linked action)"))
    return grants


def written_scopes(settings: Settings) -> list[str]:
    """The ids of what a run writes to: resource groups, the vault, and scopes of role assignments."""
    own = [settings.vault_id] if settings.vault is not None else []
    return [*_written_groups(settings), *own, *(assignment.scope for assignment in assigned(settings))]


def reader_grants(settings: Settings) -> list[AzureGrant]:
    """What the identity needs that previews (`docs/guides/pull-requests.md`)."""
    groups = written_scopes(settings)
    if settings.management_cluster is not None:
        groups.append(settings.group_id(settings.management_cluster.resource_group))
    readable = _outermost(_group_of(scope) for scope in groups)
    found = [AzureGrant(READER_ROLE, scope, "looks up what there is") for scope in readable]
    return [*found, *_kubeconfig_grants(settings)]


def renewal_role(settings: Settings) -> dict[str, Any]:
    """A custom role for renewals alone, as `az role definition create` takes it: assigns no role, deletes nothing."""
    groups = [grant.scope for grant in reader_grants(settings) if grant.role is READER_ROLE]
    return {
        "Name": f"idstack renewals {settings.resource_group}",
        "Description": "Renews certificates: reads everything, writes secrets, disables their old versions.",
        "Actions": [
            "*/read",
            "Microsoft.KeyVault/vaults/secrets/write",
            "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
        ],
        "NotActions": [],
        "DataActions": [
            "Microsoft.KeyVault/vaults/secrets/readMetadata/action",
            "Microsoft.KeyVault/vaults/secrets/update/action",
        ],
        "NotDataActions": [],
        "AssignableScopes": groups,
    }


def _makes_groups(settings: Settings) -> bool:
    return any(cluster.infrastructure == "create" for cluster in settings.hosted_clusters)


def _written_groups(settings: Settings) -> list[str]:
    if _makes_groups(settings):
        return [subscription_id(settings.subscription_id)]
    names = [settings.resource_group]
    cluster = settings.management_cluster
    if cluster is not None and cluster.create is not None:
        names.append(cluster.resource_group)
    return [settings.group_id(name) for name in dict.fromkeys(names)]


def _kubeconfig_grants(settings: Settings) -> Iterator[AzureGrant]:
    cluster = settings.management_cluster
    if cluster is not None and settings.asks_aks_for_kubeconfig:
        # The role is assigned before the first `up`.
        is_made = cluster.create is not None
        scope = settings.group_id(cluster.resource_group) if is_made else settings.management_cluster_id
        yield AzureGrant(AKS_CLUSTER_USER_ROLE, scope, "reads the address of the management cluster")


def _group_of(scope: str) -> str:
    """The resource group of a resource; a group or a subscription as it is."""
    if "/providers/" not in scope:
        return scope
    arm_id = parse_arm_id(scope)
    return resource_group_id(arm_id.subscription, arm_id.resource_group)


def _outermost(scopes: Iterable[str]) -> list[str]:
    return list(outermost({scope: scope for scope in scopes}))


def _sorted(roles: Iterable[Role]) -> tuple[Role, ...]:
    return tuple(sorted(set(roles), key=lambda role: role.name))
