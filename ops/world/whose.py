"""Whose a thing in Azure is, before a stack adopts it: by the states of the backend, its tags, and its principal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from identity import resource_types
from identity.access.azure_client import AzureClient
from identity.access.errors import AzureRefusedError
from identity.access.records import RoleAssignmentRecord
from identity.clouds import DEFAULT_CLOUD, LocalEnvironment
from identity.credentials.secret_tags import OWNER
from identity.naming import owner_mark
from ops.access.azure import deployer
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.existing import ObstacleError
from ops.world import role_assignments
from ops.world.stacks import Stacks

_API_VERSIONS: Final[Mapping[str, str]] = {
    resource_types.ROLE_ASSIGNMENT: resource_types.AUTHORIZATION_API,
    resource_types.MANAGED_IDENTITY: resource_types.MANAGED_IDENTITY_API,
    resource_types.CREDENTIAL_SECRET: resource_types.KEY_VAULT_API,
    resource_types.SIGNING_KEY: resource_types.KEY_VAULT_API,
    resource_types.ENCRYPTION_KEY: resource_types.KEY_VAULT_API,
}


class Whose:
    """Looks in Azure and at the `stacks` of the backend for the stack of this name; raises AzureRefusedError."""

    def __init__(self, azure: AzureClient, stacks: Stacks, stack: str) -> None:
        self._azure = azure
        self._stacks = stacks
        self._stack = stack

    def objection(self, type_token: str, id: str, principal: str | None = "") -> str | None:
        """Why this stack must not adopt a thing of Azure; None if it may, and for an object of Kubernetes.

        Args:
            id: the provider's; of an import also with what it has in front of an ARM id.
            principal: whom the program wants a role assignment for; None if that is known to be right.
        """
        start = id.find("/subscriptions/")
        arm_id = id if start < 0 else id[start:]
        if holder := self.holder(id):
            return f"the stack {holder} has it"
        if type_token == resource_types.APPLICATION:
            return self.foreign(owner_of_application(self._azure.directory_object(arm_id) or {}))
        if (
            type_token not in _API_VERSIONS
            or start < 0
            or (type_token == resource_types.ROLE_ASSIGNMENT and principal is None)
        ):
            return None
        if type_token == resource_types.ROLE_ASSIGNMENT:
            return self._of_principal(role_assignments.read(self._azure, arm_id), principal or "")
        found = self._azure.resource(arm_id, _API_VERSIONS[type_token]) or {}
        return self.foreign((found.get("tags") or {}).get(OWNER))

    def holder(self, id: str) -> str | None:
        """The other stack that has the thing with this id in its state."""
        arm_id = id[max(id.find("/subscriptions/"), 0) :].lower()
        others = self._stacks.besides(self._stack).items()
        return next((name for name, contents in others if arm_id in contents.things), None)

    def foreign(self, owner_id: str | None) -> str | None:
        """Why a thing with this owner id is not the stack's; None if it is, or if it carries none."""
        if owner_id is None or owner_id == self._stacks.of(self._stack).owner:
            return None
        if other := self._stacks.owned_by(owner_id):
            return f"it carries the owner id of the stack {other}"
        return (
            f"it carries the owner id {owner_id}, which no stack of this backend has. Only if it is of {self._stack}, "
            "which has lost its state or was destroyed since, and of no stack of another backend: "
            f"`.venv/bin/idstack recover --stack {self._stack} --owner {owner_id}`"
        )

    def _of_principal(self, assignment: RoleAssignmentRecord | None, wanted: str) -> str | None:
        if assignment is None:
            return None
        principal = assignment.principal_id.lower()
        if principal == wanted.lower() or principal in self._stacks.of(self._stack).texts:
            return None
        for name, contents in self._stacks.besides(self._stack).items():
            if principal in contents.principals:
                return f"it is a role of the stack {name}, whose identity {principal} lives"
        if assignment.principal_type != "ServicePrincipal":
            return f"it is a role of {principal}, a {assignment.principal_type or 'principal'}"
        try:
            found = self._azure.directory_object(f"/servicePrincipals/{principal}")
        except AzureRefusedError as refused:
            return f"it is a role of {principal}, which may live: {refused}"
        if found is None:
            return None
        return f"it is a role of {found.get('displayName') or 'a service principal'} ({principal}), which lives"


def owner_of_application(application: Mapping[str, Any]) -> str | None:
    """The owner id in an application's tags, None for none."""
    prefix = owner_mark("")
    tags = (tag for tag in application.get("tags") or () if tag.startswith(prefix))
    return next((tag.removeprefix(prefix) for tag in tags), None)


@contextmanager
def looking(engine: Engine, local: LocalEnvironment | None) -> Iterator[Whose]:
    """What reads all states of the backend, and Azure as the stack's deployer; raises CommandError."""
    stacks = Stacks.read(engine)
    with signed_in(engine, local) as azure:
        yield Whose(azure, stacks, engine.stack)


@contextmanager
def signed_in(engine: Engine, local: LocalEnvironment | None) -> Iterator[AzureClient]:
    """Azure as the stack's deployer; raises CommandError, also for a stack without a tenant."""
    configured = engine.configured()
    if "tenantId" not in configured:
        raise CommandError(
            f"the stack {engine.stack} has no tenantId, so nobody can look; `idstack pulumi --stack {engine.stack} "
            "-- config set tenantId <uuid>`"
        )
    with deployer(engine.stack, {"cloud": DEFAULT_CLOUD, **configured}, local) as azure:
        yield azure


@contextmanager
def told(engine: Engine, local: LocalEnvironment | None) -> Iterator[None]:
    """A run whose error says, of each thing in its way, whether it may be adopted, and whose it is if not."""
    try:
        yield
    except ObstacleError as stopped:
        try:
            with looking(engine, local) as whose:
                objections = {each: whose.objection(each.type, each.id, each.principal) for each in stopped.found}
        except CommandError as failed:
            raise CommandError(
                f"{stopped}\n\nWhose they are could not be looked up: {failed}. `idstack import` looks again"
            ) from None
        raise stopped.judged({each: why for each, why in objections.items() if why is not None}) from None
