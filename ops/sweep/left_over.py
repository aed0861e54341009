"""Finds resources in Azure that no stack of the backend mentions: role assignments, secrets, applications, managed
identities, credentials of these two, storage accounts of OIDC issuers, and HyperShift's remains of hosted clusters.

Each one has the reason, and whether it is this program's. Resources that may belong to others are listed, never
deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.deployer_rights import assigned, catalogue_roles
from identity.azure.records import ManagedIdentityRecord, RoleAssignmentRecord, SecretMetadata
from identity.azure.registered_certificates import registered, withdraw
from identity.credentials import rfc3339
from identity.credentials.schedule import OVERLAP
from identity.credentials.secret_tags import (
    DELIVERED_AT,
    ENCRYPTION_KEY_ID,
    GENERATION,
    OWNER,
    SIGNING_KEY_ID,
    THUMBPRINT,
)
from identity.naming import DEPLOYER_COMPONENT, STACK_TAG, parse_arm_id, role_assignment_name, stack_tag
from identity.settings import Settings
from ops.world.adoption_guard import owner_of_application
from ops.world.azure import (
    CERTIFICATE,
    added_credentials,
    federated_credentials,
    managed_identities_within,
    read_vault_secrets,
    role_assignments_at,
)
from ops.world.stacks import COMPONENTS, Stacks

_ISSUER_STAYS: Final = (
    "a hosted cluster may sign in with it, and a stack of another backend may have created it; if no cluster does, "
    "`az storage account delete` removes it"
)


class Swept(StrEnum):
    """The kinds of leftovers, in the order of deletion: assignments before their identities."""

    ROLE_ASSIGNMENT = "role assignment"
    REGISTRATION = "registered certificate"
    CLIENT_SECRET = "client secret"
    FEDERATED_CREDENTIAL = "federated credential"
    APPLICATION = "application"
    SECRET = "secret"
    STORAGE_ACCOUNT = "storage account"
    MANAGED_IDENTITY = "managed identity"
    MACHINE = "virtual machine"
    DISK = "disk"
    INTERFACE = "network interface"
    LOAD_BALANCER = "load balancer"
    PUBLIC_ADDRESS = "public IP address"


@dataclass(frozen=True)
class LeftOver:
    """A leftover: its id (of ARM, or a path in Graph), its name, and why it is listed.

    `not_ours` says why it is not this program's; None if it is. `too_soon` says until when it must stay; None if it may
    be deleted.
    """

    kind: Swept
    id: str
    name: str
    reason: str
    not_ours: str | None = None
    too_soon: str | None = None

    @property
    def is_deleted(self) -> bool:
        """Whether `--yes` deletes it."""
        return self.not_ours is None and self.too_soon is None

    def to_json(self) -> dict[str, Any]:
        found = {"kind": self.kind, "id": self.id, "name": self.name, "reason": self.reason}
        return {**found, "notOurs": self.not_ours, "tooSoon": self.too_soon, "ours": self.not_ours is None}


def find(
    azure: AzureClient,
    settings: Settings,
    project: str,
    vault_id: str | None,
    stacks: Stacks,
    infra_ids: Sequence[str],
    now: datetime,
) -> list[LeftOver]:
    """The leftovers in the scope of a stack's configuration, in the order of deletion.

    Args:
        project: the Pulumi project, the prefix of the tags.
        vault_id: the stack's vault; None if it never had one.
        stacks: the contents of the backend's stacks.
        infra_ids: infrastructure ids of deleted hosted clusters, from the user.
        now: with a time zone.

    Raises AzureRefusedError for a service that refuses or does not answer.
    """
    tagged = azure.directory_objects("/applications", f"tags/any(t:startswith(t,'{stack_tag(project, '')}'))")
    named = [one for one in tagged if stacks.mentions(one["id"], one["appId"])]
    secrets = [] if vault_id is None else read_vault_secrets(azure, vault_id)
    applications = dict(_applications(azure, project, stacks, [one for one in tagged if one not in named]))
    in_group = managed_identities_within(azure, settings.group_id(settings.resource_group))
    all_identities = [one for one in in_group if one.tags.get(STACK_TAG, "").startswith(stack_tag(project, ""))]
    named_identities = [one for one in all_identities if stacks.mentions(one.id, one.client_id)]
    identities = dict(_managed_identities(stacks, [one for one in all_identities if one not in named_identities]))
    principals = (applications | identities).items()
    orphaned = {principal.lower(): owner for owner, principal in principals if principal and owner.not_ours is None}
    configured = {cluster.infra_id for cluster in settings.hosted_clusters}
    return [
        *_assignments(azure, settings, stacks, {*stacks.infra_ids, *configured, *infra_ids}, orphaned),
        *_registrations(named, secrets, stacks, now),
        *_added(azure, named, named_identities, stacks),
        *applications,
        *_secrets(secrets, stacks, {key.thumbprint for application in named for key in registered(application)}),
        *_issuers(azure, settings, stacks),
        *identities,
        *_remains(azure, f"/subscriptions/{settings.subscription_id}", stacks, infra_ids),
    ]


def delete(azure: AzureClient, left_over: LeftOver) -> None:
    """Delete a resource of ours; raises AzureRefusedError. Secrets and applications can be recovered for some time."""
    match left_over.kind:
        case Swept.ROLE_ASSIGNMENT:
            azure.delete_resource(left_over.id, resource_types.AUTHORIZATION_API)
        case Swept.REGISTRATION:
            application, _, key_id = left_over.id.partition(CERTIFICATE)
            withdraw(azure, application, key_id)
        case Swept.APPLICATION:
            azure.delete_directory_object(left_over.id)
        case Swept.SECRET:
            vault, name = parse_arm_id(left_over.id).names
            azure.vault(vault, "DELETE", f"/secrets/{name}")
        case Swept.MANAGED_IDENTITY:
            azure.delete_resource(left_over.id, resource_types.MANAGED_IDENTITY_API)
        case _:
            raise ValueError(f"a {left_over.kind} is never this program's")


def _foreign_owner(owner_id: str | None, stacks: Stacks) -> str | None:
    """Why a resource with this owner id is not deleted; None if a stack of the backend has the id.

    The names of project and stack are not enough: another clone of the repository has the same ones.
    """
    if owner_id is None:
        return "it has no owner id, so that a stack of another backend may have created it"
    if stacks.owned_by(owner_id) is not None:
        return None
    return f"no stack of this backend has its owner id {owner_id}, but one of another backend may"


def _applications(
    azure: AzureClient, project: str, stacks: Stacks, unnamed: Sequence[AzureObject]
) -> Iterator[tuple[LeftOver, str]]:
    """Applications with our tag that no stack has, each with the object id of its service principal ("" for none)."""
    for application in unnamed:
        [tag, *_] = [tag for tag in application["tags"] if tag.startswith(stack_tag(project, ""))]
        principal = azure.directory_object(f"/servicePrincipals(appId='{application['appId']}')") or {}
        left_over = LeftOver(
            Swept.APPLICATION,
            f"/applications/{application['id']}",
            application["displayName"],
            f"it has the tag {tag}, and no stack has it",
            _foreign_owner(owner_of_application(application), stacks),
        )
        yield left_over, str(principal.get("id", ""))


def _managed_identities(stacks: Stacks, unnamed: Sequence[ManagedIdentityRecord]) -> Iterator[tuple[LeftOver, str]]:
    """Managed identities with our tag that no stack has, each with the object id of its principal."""
    for identity in unnamed:
        reason = f"it has the tag {STACK_TAG}={identity.tags[STACK_TAG]}, and no stack has it"
        foreign = _foreign_owner(identity.tags.get(OWNER), stacks)
        yield LeftOver(Swept.MANAGED_IDENTITY, identity.id, identity.name, reason, foreign), identity.principal_id


def _secrets(secrets: Sequence[SecretMetadata], stacks: Stacks, in_use: Set[str | None]) -> Iterator[LeftOver]:
    """Secrets with this program's tags of a credential, a signing key or an encryption key of etcd.

    `in_use` are the thumbprints of what the stacks' applications have registered: a state has lost such a secret.
    """
    for secret in secrets:
        tags = secret.tags
        is_credential = THUMBPRINT in tags and GENERATION in tags
        marks = [f"{GENERATION}={tags[GENERATION]}"] if is_credential else []
        marks += [tag for tag in (SIGNING_KEY_ID, ENCRYPTION_KEY_ID) if tag in tags]
        if not marks or stacks.mentions(secret.id):
            continue
        reason, foreign = f"it has the tag {marks[0]}, and no stack has it", _foreign_owner(tags.get(OWNER), stacks)
        is_used = secret.thumbprint in in_use - {None}
        used = "pods sign in with it; `.venv/bin/idstack recover` adopts it" if is_used else None
        yield LeftOver(Swept.SECRET, secret.id, secret.name, reason, foreign, used)


def _issuers(azure: AzureClient, settings: Settings, stacks: Stacks) -> Iterator[LeftOver]:
    """Storage accounts of OIDC issuers in the stack's resource group, by the name of their deployer's assignment.

    They do not tell their stack, and clusters sign in with them.
    """
    group = settings.group_id(settings.resource_group)
    for resource in azure.resources(f"{group}/providers/Microsoft.Storage/storageAccounts", resource_types.STORAGE_API):
        if stacks.mentions(resource["id"]):
            continue
        scope = settings.issuer_account_id(resource["name"])
        ours = role_assignment_name(resource["name"], DEPLOYER_COMPONENT, scope)
        if any(assignment.name.lower() == ours for assignment in role_assignments_at(azure, scope)):
            reason = "a stack created it for an OIDC issuer, and no stack has it"
            yield LeftOver(Swept.STORAGE_ACCOUNT, resource["id"], resource["name"], reason, _ISSUER_STAYS)


def _assignments(
    azure: AzureClient, settings: Settings, stacks: Stacks, infra_ids: set[str], orphaned: Mapping[str, LeftOver]
) -> Iterator[LeftOver]:
    """Role assignments at and below the scopes where the stack assigns roles; `orphaned` are leftovers by principal."""
    roles = {catalogue_role.guid for catalogue_role in catalogue_roles()}

    @cache
    def exists(principal: str) -> bool:
        return azure.directory_object(f"/servicePrincipals/{principal}") is not None

    def not_ours(assignment: RoleAssignmentRecord) -> str | None:
        if assignment.role not in roles:
            return "no stack assigns its role"
        names = (
            role_assignment_name(one, component, assignment.scope) for one in infra_ids for component in COMPONENTS
        )
        if assignment.name.lower() in names:
            return None
        return "its name is not one of a known cluster; name a deleted cluster with --infra-id"

    assignments = {
        assignment.id.lower(): assignment
        for scope in dict.fromkeys(role.scope for role in assigned(settings))
        for assignment in role_assignments_at(azure, scope)
        # The list includes scopes above.
        if f"{assignment.scope}/".lower().startswith(f"{scope}/".lower())
    }
    for assignment in assignments.values():
        if stacks.mentions(assignment.id):
            continue
        principal = assignment.principal_id.lower()
        if owner := orphaned.get(principal):
            reason, foreign = f"it is of the leftover {owner.kind} {owner.name}", None
        elif assignment.principal_type == "ServicePrincipal" and not exists(principal):
            reason, foreign = f"its principal {principal} does not exist", not_ours(assignment)
        else:
            continue
        name = f"{assignment.name} at {assignment.scope.rpartition('/')[2]}"
        yield LeftOver(Swept.ROLE_ASSIGNMENT, assignment.id, name, reason, foreign)


def _registrations(
    applications: Iterable[AzureObject], secrets: Iterable[SecretMetadata], stacks: Stacks, now: datetime
) -> Iterator[LeftOver]:
    """The unknown registrations of ours with a successor in the vault, so that pods do not depend on them for long.

    A run may have made a young one, and not yet delivered it. `applications` are those of stacks.
    """
    delivered = dict(_delivered(secrets))
    for application in applications:
        ours = {
            thumbprint: certificate
            for certificate in registered(application)
            if certificate.is_ours and (thumbprint := certificate.thumbprint)
        }
        successors = [
            delivered[thumbprint]
            for thumbprint, certificate in ours.items()
            if thumbprint in delivered and stacks.mentions(certificate.key_id)
        ]
        if not successors:
            continue
        for thumbprint, certificate in ours.items():
            if not stacks.mentions(certificate.key_id) and thumbprint not in delivered:
                free_at = max(*successors, certificate.begins) + OVERLAP
                yield LeftOver(
                    Swept.REGISTRATION,
                    f"/applications/{application['id']}{CERTIFICATE}{certificate.key_id}",
                    f"{thumbprint} of {application['displayName']}",
                    "no stack has it, and the vault has a newer one",
                    too_soon=f"pods may sign in with it until {rfc3339.render(free_at)}" if now < free_at else None,
                )


def _delivered(secrets: Iterable[SecretMetadata]) -> Iterator[tuple[str, datetime]]:
    """Thumbprint and time of each certificate in the vault, by valid tags; an edited tag makes no time earlier."""
    for secret in secrets:
        with suppress(KeyError, ValueError):
            yield secret.tags[THUMBPRINT], max(rfc3339.parse(secret.tags[DELIVERED_AT]), secret.created)


# kubernetes-sigs/cluster-api-provider-azure api/v1beta1/tags.go, `ClusterTagKey`: on machines and, in newer releases,
# on their interfaces. HyperShift names its Cluster by the infrastructure id (`CAPICluster` in
# hypershift-operator/controllers/manifests/controlplaneoperator/manifests.go).
_MACHINES_TAG: Final = "sigs.k8s.io_cluster-api-provider-azure_cluster_"
# cloud-provider-azure pkg/consts/consts.go, on addresses; its `--cluster-name` is the infrastructure id, and so is the
# name of its public load balancer (HyperShift v2/cloud_controller_manager/azure/deployment.go).
_ADDRESS_TAG: Final = "k8s-azure-cluster-name"
_NOT_OURS: Final = "HyperShift created it, and its cluster may be unknown to the stacks of this backend"


def _remains(azure: AzureClient, subscription: str, stacks: Stacks, infra_ids: Sequence[str]) -> Iterator[LeftOver]:
    """The remains in a subscription (its ARM id) of clusters that no stack has; one list for each type.

    Clusters without an infrastructure id from the user are found by their machines. ARM lists the resources that the
    deployer may read.
    """

    def listed(type_: str) -> list[AzureObject]:
        api, condition = resource_types.RESOURCES_LIST_API, f"resourceType eq '{type_}'"
        return azure.resources(f"{subscription}/resources", api, condition)

    machines = listed("Microsoft.Compute/virtualMachines")
    owners = {machine["id"].lower(): infra_id for machine in machines if (infra_id := _tagged(machine))}
    deleted = {infra_id for infra_id in (*owners.values(), *infra_ids) if not stacks.have_infra_id(infra_id)}
    if not deleted:
        return
    by_name = {machine["name"].lower(): owners.get(machine["id"].lower()) for machine in machines}

    def of_machine(resource: AzureObject) -> str | None:
        """The infrastructure id of a disk or interface, by its tag, by its machine, or by its name."""
        name = resource["name"].lower()
        stem = name.removesuffix("_osdisk") if name.endswith("_osdisk") else name.partition("-nic")[0]
        return _tagged(resource) or owners.get(str(resource.get("managedBy", "")).lower()) or by_name.get(stem)

    def of_balancer(resource: AzureObject) -> str:
        return str(resource["name"]).removesuffix("-internal")

    def of_address(resource: AzureObject) -> str:
        return (resource.get("tags") or {}).get(_ADDRESS_TAG) or str(resource["name"])

    for kind, resources, infra_id_of in (
        (Swept.MACHINE, machines, _tagged),
        (Swept.DISK, listed("Microsoft.Compute/disks"), of_machine),
        (Swept.INTERFACE, listed("Microsoft.Network/networkInterfaces"), of_machine),
        (Swept.LOAD_BALANCER, listed("Microsoft.Network/loadBalancers"), of_balancer),
        (Swept.PUBLIC_ADDRESS, listed("Microsoft.Network/publicIPAddresses"), of_address),
    ):
        for candidate in resources:
            if (infra_id := infra_id_of(candidate)) in deleted:
                reason = f"it is of the cluster with the infrastructure id {infra_id}, which no stack has"
                yield LeftOver(kind, candidate["id"], candidate["name"], reason, _NOT_OURS)


def _tagged(resource: AzureObject) -> str | None:
    """The infrastructure id in the tag of machines."""
    for name, value in (resource.get("tags") or {}).items():
        if name.startswith(_MACHINES_TAG) and value == "owned":
            return str(name.removeprefix(_MACHINES_TAG))
    return None


_NOT_ADDED_BY_US: Final = "this program did not add it"


def _added(
    azure: AzureClient, applications: Iterable[AzureObject], identities: Iterable[ManagedIdentityRecord], stacks: Stacks
) -> Iterator[LeftOver]:
    """The foreign credentials of the stacks' applications and their service principals, with two requests for each, and
    the foreign federated credentials of their managed identities, with one.
    """
    for application in applications:
        principal = azure.directory_object(f"/servicePrincipals(appId='{application['appId']}')")
        for added in added_credentials(azure, application, principal):
            if not stacks.mentions(added.id):
                reason = f"no stack has it{added.trusts}"
                yield LeftOver(Swept(added.kind), added.path, added.name, reason, _NOT_ADDED_BY_US)
    for identity in identities:
        for found in federated_credentials(azure, identity.id):
            if not stacks.mentions(found.id):
                name, reason = (
                    f"{found.name} of {identity.name}",
                    f"no stack has it, for {found.subject} of {found.issuer}",
                )
                yield LeftOver(Swept.FEDERATED_CREDENTIAL, found.id, name, reason, _NOT_ADDED_BY_US)
