"""What Azure has that no stack of the backend names: role assignments, secrets, applications, managed identities,
credentials of these two, storage accounts of OIDC issuers, and what HyperShift left of hosted clusters.

Each finding says why it is thought to be left over, and whether it is this program's. What may be somebody else's is
listed, and never deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from identity import resource_types
from identity.access.azure_client import AzureClient, AzureObject
from identity.access.deployer_rights import assigned, catalogue_roles
from identity.access.records import ManagedIdentityRecord, RoleAssignmentRecord, SecretMetadata
from identity.access.registered_certificates import withdraw
from identity.credentials import rfc3339
from identity.credentials.secret_tags import ENCRYPTION_KEY_ID, GENERATION, OWNER, SIGNING_KEY_ID, THUMBPRINT
from identity.naming import (
    DEPLOYER_COMPONENT,
    STACK_TAG,
    parse_arm_id,
    resource_group_id,
    resource_id,
    role_assignment_name,
    stack_tag,
)
from identity.settings import Settings
from ops.sweep import added_credentials, machines, registrations
from ops.sweep.model import CERTIFICATE, LeftOver, Swept
from ops.world import managed_identities, role_assignments, vault_secrets
from ops.world.stacks import COMPONENTS, Stacks
from ops.world.whose import owner_of_application

_ACCOUNTS: Final = "Microsoft.Storage/storageAccounts"
_ISSUER_STAYS: Final = (
    "a hosted cluster may sign in by it, and nothing says that a stack of this backend made it; if none does, "
    "`az storage account delete` removes it"
)


def find(
    azure: AzureClient,
    settings: Settings,
    project: str,
    vault_id: str | None,
    stacks: Stacks,
    infra_ids: Sequence[str],
    now: datetime,
) -> list[LeftOver]:
    """Everything that is left over where a stack's configuration leads, in the order of deletion.

    Args:
        project: the Pulumi project, which the tags begin with.
        vault_id: the stack's vault; None if it never had one.
        stacks: what the stacks of the backend name.
        infra_ids: infrastructure ids of hosted clusters that are gone, as the user knows them.
        now: with a time zone.

    Raises AzureRefusedError for a service that refuses or does not answer.
    """
    tagged = azure.directory_objects("/applications", f"tags/any(t:startswith(t,'{stack_tag(project, '')}'))")
    named = [each for each in tagged if stacks.name(each["id"], each["appId"])]
    secrets = [] if vault_id is None else vault_secrets.read(azure, vault_id)
    applications = list(_applications(azure, project, stacks, [each for each in tagged if each not in named]))
    tagged_identities = _tagged_identities(azure, settings, project)
    named_identities = [each for each in tagged_identities if stacks.name(each.id, each.client_id)]
    unnamed_identities = [each for each in tagged_identities if each not in named_identities]
    identities = list(_managed_identities(stacks, unnamed_identities))
    gone = [(each, principal) for each, principal in [*applications, *identities] if each.not_ours is None]
    configured = {each.infra_id for each in settings.hosted_clusters}
    known = _Known(
        azure, stacks, {*stacks.infra_ids, *configured, *infra_ids}, {principal: each for each, principal in gone}
    )
    return [
        *known.assignments(settings),
        *_registrations(named, secrets, stacks, now),
        *added_credentials.of_applications(azure, named, stacks.name),
        *added_credentials.of_managed_identities(azure, named_identities, stacks.name),
        *(each for each, _ in applications),
        *_secrets(secrets, stacks),
        *_issuers(azure, settings, stacks),
        *(each for each, _ in identities),
        *machines.find(azure, f"/subscriptions/{settings.subscription_id}", stacks.have_infra_id, infra_ids),
    ]


def delete(azure: AzureClient, found: LeftOver) -> None:
    """Delete one thing of ours; raises AzureRefusedError. Secrets and applications can be recovered for some time."""
    match found.kind:
        case Swept.ROLE_ASSIGNMENT:
            azure.delete_resource(found.id, resource_types.AUTHORIZATION_API)
        case Swept.REGISTRATION:
            application, _, key_id = found.id.partition(CERTIFICATE)
            withdraw(azure, application, key_id)
        case Swept.APPLICATION:
            azure.delete_directory_object(found.id)
        case Swept.SECRET:
            vault, name = parse_arm_id(found.id).names
            azure.vault(vault, "DELETE", f"/secrets/{name}")
        case Swept.MANAGED_IDENTITY:
            azure.delete_resource(found.id, resource_types.MANAGED_IDENTITY_API)
        case _:
            raise ValueError(f"a {found.kind} is never this program's")


def _foreign_owner(owner_id: str | None, stacks: Stacks) -> str | None:
    """Why what carries this owner id is not deleted; None if a stack of the backend has the id.

    The names of projects and stacks are not enough: another clone of the repository has the same ones.
    """
    if owner_id is None:
        return "it carries no owner id, so nothing says that a stack of this backend made it"
    if stacks.owned_by(owner_id) is not None:
        return None
    return f"no stack of this backend has its owner id {owner_id}, and one of another may"


def _registrations(
    applications: Sequence[AzureObject], secrets: Sequence[SecretMetadata], stacks: Stacks, now: datetime
) -> Iterator[LeftOver]:
    """Certificates of ours at the stacks' applications that no stack has."""
    for each in registrations.find(applications, secrets, stacks.name):
        free_at = rfc3339.render(each.free_at)
        yield LeftOver(
            Swept.REGISTRATION,
            f"/applications/{each.application['id']}{CERTIFICATE}{each.key_id}",
            f"{each.thumbprint} of {each.application['displayName']}",
            "no stack has it, and the vault has a later one",
            too_soon=f"pods may sign in with it until {free_at}" if now < each.free_at else None,
        )


def _applications(
    azure: AzureClient, project: str, stacks: Stacks, unnamed: Sequence[AzureObject]
) -> Iterator[tuple[LeftOver, str]]:
    """Applications with our tag that no stack has, each with the object id of its service principal ("" for none)."""
    for each in unnamed:
        [tag, *_] = [tag for tag in each["tags"] if tag.startswith(stack_tag(project, ""))]
        principal = azure.directory_object(f"/servicePrincipals(appId='{each['appId']}')") or {}
        thing = LeftOver(
            Swept.APPLICATION,
            f"/applications/{each['id']}",
            each["displayName"],
            f"it has the tag {tag}, and no stack has it",
            _foreign_owner(owner_of_application(each), stacks),
        )
        yield thing, str(principal.get("id", ""))


def _tagged_identities(azure: AzureClient, settings: Settings, project: str) -> list[ManagedIdentityRecord]:
    """Managed identities with our tag, in the stack's resource group."""
    group = resource_group_id(settings.subscription_id, settings.resource_group)
    found = managed_identities.within(azure, group)
    return [each for each in found if each.tags.get(STACK_TAG, "").startswith(stack_tag(project, ""))]


def _managed_identities(stacks: Stacks, unnamed: Sequence[ManagedIdentityRecord]) -> Iterator[tuple[LeftOver, str]]:
    """Managed identities with our tag that no stack has, each with the object id of its principal."""
    for each in unnamed:
        reason = f"it has the tag {STACK_TAG}={each.tags[STACK_TAG]}, and no stack has it"
        foreign = _foreign_owner(each.tags.get(OWNER), stacks)
        yield LeftOver(Swept.MANAGED_IDENTITY, each.id, each.name, reason, foreign), each.principal_id


def _secrets(secrets: Sequence[SecretMetadata], stacks: Stacks) -> Iterator[LeftOver]:
    """Secrets with the tags of a credential, of a signing key or of a key of etcd that this program wrote."""
    for each in secrets:
        tags = each.tags
        is_credential = THUMBPRINT in tags and GENERATION in tags
        words = [f"{GENERATION}={tags[GENERATION]}"] if is_credential else []
        words += [tag for tag in (SIGNING_KEY_ID, ENCRYPTION_KEY_ID) if tag in tags]
        if not words or stacks.name(each.id):
            continue
        reason = f"it has the tag {words[0]}, and no stack has it"
        yield LeftOver(Swept.SECRET, each.id, each.name, reason, _foreign_owner(tags.get(OWNER), stacks))


def _issuers(azure: AzureClient, settings: Settings, stacks: Stacks) -> Iterator[LeftOver]:
    """Storage accounts of OIDC issuers in the stack's resource group: their deployer's assignment has a name of ours.

    None says whose stack made it, and a cluster signs in by it.
    """
    group = resource_group_id(settings.subscription_id, settings.resource_group)
    for each in azure.resources(f"{group}/providers/{_ACCOUNTS}", resource_types.STORAGE_API):
        if stacks.name(each["id"]):
            continue
        scope = resource_id(settings.subscription_id, settings.resource_group, _ACCOUNTS, each["name"])
        ours = role_assignment_name(each["name"], DEPLOYER_COMPONENT, scope)
        if any(assignment.name.lower() == ours for assignment in role_assignments.at(azure, scope)):
            reason = "it is of an OIDC issuer that a stack created, and no stack has it"
            yield LeftOver(Swept.STORAGE_ACCOUNT, each["id"], each["name"], reason, _ISSUER_STAYS)


class _Known:
    """Whether a role assignment is left over, and whether it is ours."""

    def __init__(self, azure: AzureClient, stacks: Stacks, infra_ids: set[str], gone: dict[str, LeftOver]) -> None:
        self._azure = azure
        self._stacks = stacks
        self._infra_ids = infra_ids
        self._gone = {principal.lower(): each for principal, each in gone.items() if principal}
        self._principals: dict[str, bool] = {}

    def assignments(self, settings: Settings) -> Iterator[LeftOver]:
        """The left-over ones at and below the scopes on which the stack assigns roles, each once."""
        found: dict[str, RoleAssignmentRecord] = {}
        for scope in dict.fromkeys(each.scope for each in assigned(settings)):
            for each in role_assignments.at(self._azure, scope):
                # The list has what lies above as well.
                if f"{each.scope}/".lower().startswith(f"{scope}/".lower()):
                    found[each.id.lower()] = each
        for each in found.values():
            if not self._stacks.name(each.id):
                yield from self._judged(each)

    def _judged(self, found: RoleAssignmentRecord) -> Iterator[LeftOver]:
        principal = found.principal_id.lower()
        shown = f"{found.name} at {found.scope.rpartition('/')[2]}"
        if principal in self._gone:
            owner = self._gone[principal]
            reason = f"it is of the left-over {owner.kind} {owner.name}"
            yield LeftOver(Swept.ROLE_ASSIGNMENT, found.id, shown, reason)
            return
        if found.principal_type != "ServicePrincipal" or self._exists(principal):
            return
        reason = f"its principal {principal} is gone"
        yield LeftOver(Swept.ROLE_ASSIGNMENT, found.id, shown, reason, self._not_ours(found))

    def _not_ours(self, found: RoleAssignmentRecord) -> str | None:
        if found.role not in {each.guid for each in catalogue_roles()}:
            return "its role is none that a stack assigns"
        names = (role_assignment_name(each, word, found.scope) for each in self._infra_ids for word in COMPONENTS)
        if found.name.lower() in names:
            return None
        return "its name is none that a known cluster's has; of a cluster that is gone give --infra-id"

    def _exists(self, principal: str) -> bool:
        if principal not in self._principals:
            found = self._azure.directory_object(f"/servicePrincipals/{principal}")
            self._principals[principal] = found is not None
        return self._principals[principal]
