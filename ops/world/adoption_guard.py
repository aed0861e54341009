"""Finds the owner of a resource in Azure before a stack adopts it: by the backend's states, tags, and principal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.azure.records import RoleAssignmentRecord
from identity.credentials.secret_tags import OWNER
from identity.naming import owner_mark, parse_arm_id, secret_id
from ops.access.clients import deployer
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import UNKNOWN, StateResource
from ops.world.azure import added_credentials, read_role_assignment
from ops.world.stacks import Stacks

_API_VERSIONS: Final[Mapping[str, str]] = {
    resource_types.MANAGED_IDENTITY: resource_types.MANAGED_IDENTITY_API,
    **dict.fromkeys(resource_types.VAULT_SECRETS, resource_types.KEY_VAULT_API),
}


class AdoptionGuard:
    """Compares Azure with the `stacks` of the backend, for the stack of this name; raises AzureRefusedError."""

    def __init__(self, azure: AzureClient, stacks: Stacks, stack: str) -> None:
        self._azure = azure
        self._stacks = stacks
        self._stack = stack

    def objection(self, type_token: str, id: str, principal: str | None = "") -> str | None:
        """Why this stack must not adopt a resource of Azure; None if it may, and for an object of Kubernetes.

        Args:
            id: the provider's id; in an import it may have a prefix before an ARM id.
            principal: the principal of a role assignment in the program; None if the principal was compared already.
        """
        start = id.find("/subscriptions/")
        arm_id = id if start < 0 else id[start:]
        others = self._stacks.others(self._stack).items()
        if holder := next((name for name, contents in others if arm_id.lower() in contents.ids), None):
            return f"the stack {holder} has it"
        if type_token == resource_types.APPLICATION:
            return self.foreign(owner_of_application(self._azure.directory_object(arm_id) or {}))
        if type_token == resource_types.ROLE_ASSIGNMENT and start >= 0 and principal is not None:
            return self._of_principal(read_role_assignment(self._azure, arm_id), principal)
        if type_token not in _API_VERSIONS or start < 0:
            return None
        resource = self._azure.resource(arm_id, _API_VERSIONS[type_token]) or {}
        return self.foreign((resource.get("tags") or {}).get(OWNER))

    def deleted_secrets(self, resources: Iterable[StateResource]) -> Iterator[tuple[StateResource, str, str | None]]:
        """The secrets among the resources of a plan that their vault keeps deleted: each with its ARM id, and why this
        stack must not recover it, None if it may.
        """
        tags: dict[str, dict[str, Mapping[str, str]]] = {}
        for resource in resources:
            inputs = resource.get("inputs") or {}
            vault, name = inputs.get("vaultId", UNKNOWN), inputs.get("secretName")
            if vault == UNKNOWN or resource["type"] not in resource_types.VAULT_SECRETS:
                continue
            if vault not in tags:
                listed = self._azure.vault_list(parse_arm_id(vault).name, "/deletedsecrets")
                tags[vault] = {secret["id"].rpartition("/")[2]: secret.get("tags") or {} for secret in listed}
            if name in tags[vault]:
                yield resource, secret_id(vault, name), self.foreign(tags[vault][name].get(OWNER))

    def require_untouched(self, path: str, owners: Collection[str], recorded: str | None) -> None:
        """Raise CommandError for an application (its path in Graph) that somebody else may have made or changed.

        Everybody in a tenant can read its tags, and make another one with them.

        Args:
            owners: object ids of those in the program; those in the stack's state are known as well.
            recorded: the client id that the last complete run had in its place; None for none.
        """
        application = self._azure.directory_object(path) or {}
        client, known = application.get("appId"), {*owners, *self._stacks.of(self._stack).texts}
        principal = self._azure.directory_object(f"/servicePrincipals(appId='{client}')")
        found = list(map(str, added_credentials(self._azure, application, principal)))
        found += [
            f"owner {owner.get('displayName') or ''} ({owner['id']})"
            for owner in (self._azure.directory_object(f"{path}/owners") or {}).get("value", ())
            if owner["id"].lower() not in known
        ]
        if recorded not in (None, client):
            found.append(f"client id {client}; the last complete run had {recorded}")
        if found:
            raise CommandError(
                f"the application {application.get('displayName')} ({path}, created "
                f"{application.get('createdDateTime')}) has the tags of {self._stack}, which everybody in the tenant "
                f"can copy, and was not adopted, because it has: {'; '.join(found)}. Delete it (`az ad app delete --id "
                f"{client}`), or, if you are sure that a run of the stack made it, remove the credentials and owners "
                "and adopt it by `.venv/bin/idstack import`; then run the command again"
            )

    def foreign(self, owner_id: str | None) -> str | None:
        """Why a resource with this owner id is not the stack's; None if it is, or has no owner id."""
        if owner_id is None or owner_id == self._stacks.of(self._stack).owner:
            return None
        if other := self._stacks.owned_by(owner_id):
            return f"it has the owner id of the stack {other}"
        return (
            f"it has the owner id {owner_id}, which no stack of this backend has. If you are sure that {self._stack} "
            "had it before it lost its state or was destroyed, and no stack of another backend has it: "
            f"`.venv/bin/idstack recover --stack {self._stack} --owner {owner_id}`"
        )

    def _of_principal(self, assignment: RoleAssignmentRecord | None, expected: str) -> str | None:
        if assignment is None:
            return None
        principal = assignment.principal_id.lower()
        if principal == expected.lower() or principal in self._stacks.of(self._stack).texts:
            return None
        for name, contents in self._stacks.others(self._stack).items():
            if principal in contents.principals:
                return f"it is a role of the stack {name}, whose identity {principal} exists"
        if assignment.principal_type != "ServicePrincipal":
            return f"it is a role of {principal}, a {assignment.principal_type or 'principal'}"
        try:
            service_principal = self._azure.directory_object(f"/servicePrincipals/{principal}")
        except AzureRefusedError as refused:
            return f"it is a role of {principal}, which may exist: {refused}"
        if service_principal is None:
            return None
        name = service_principal.get("displayName") or "a service principal"
        return f"it is a role of {name} ({principal}), which exists"


def owner_of_application(application: Mapping[str, Any]) -> str | None:
    """The owner id in an application's tags; None without one."""
    prefix = owner_mark("")
    tags = (tag for tag in application.get("tags") or () if tag.startswith(prefix))
    return next((tag.removeprefix(prefix) for tag in tags), None)


@contextmanager
def adoption_guard(engine: Engine) -> Iterator[AdoptionGuard]:
    """A guard with all states of the backend, and the deployer's sign-in to Azure; raises as `deployer`."""
    stacks = Stacks.read(engine)
    with deployer(engine) as azure:
        yield AdoptionGuard(azure, stacks, engine.stack)
