"""Which resources of a stack's plan exist already: the plan has their names, parents and providers, Azure their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from identity import resource_types
from identity.access.azure_client import AzureClient
from identity.access.records import RoleAssignmentRecord
from ops.adoption.existing import FoundResources
from ops.recovery.finders import Finders
from ops.recovery.orphans import ids, shown
from ops.stack.errors import CommandError
from ops.stack.state import Plan, StateResource, name_of
from ops.world import role_assignments
from ops.world.ownership import KEY_VAULT_USER, Ownership

_ADOPTED: Final = frozenset(
    {
        resource_types.APPLICATION,
        resource_types.SERVICE_PRINCIPAL,
        resource_types.CREDENTIAL_SECRET,
        resource_types.MANAGED_IDENTITY,
        resource_types.ROLE_ASSIGNMENT,
        resource_types.FEDERATED_CREDENTIAL,
        resource_types.VAULT,
    }
)


@dataclass(frozen=True)
class Match:
    """A resource that the next `up` would create, and whose it is: a field of the HostedCluster API; "" for the vault
    and the key-vault-user.

    `id` is that of the thing that exists, as an import takes it; None if there is none. `replaced_for` says why the
    next `up` replaces it all the same, empty if it does not. `other_role` is the GUID of a role assignment's role, if
    that is the reason.
    """

    resource: StateResource
    owner: str
    id: str | None
    replaced_for: str = ""
    other_role: str | None = None

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return name_of(self.resource["urn"])

    def has_type(self, type_token: str) -> bool:
        """Whether it is of this type."""
        return self.resource["type"] == type_token


def match(
    plan: Plan, state: Sequence[StateResource], cluster: str, existing: FoundResources, azure: AzureClient
) -> list[Match]:
    """The plan's creates of the cluster and of what hosted clusters share, in the plan's order.

    Raises CommandError for a role assignment in the way whose principal lives, and CommandError and AzureRefusedError
    as `Finders` and `AzureClient` do.
    """
    return list(_Matcher(plan, state, cluster, existing, azure).matches())


class _Matcher:
    def __init__(
        self, plan: Plan, state: Sequence[StateResource], cluster: str, existing: FoundResources, azure: AzureClient
    ) -> None:
        self._steps = plan["steps"]
        self._ownership = Ownership.of([each["newState"] for each in self._steps if "newState" in each])
        self._cluster = cluster
        self._existing = existing
        self._azure = azure
        self._finders = Finders(azure, None, existing.subscription, ids(state))

    def matches(self) -> Iterator[Match]:
        for step in self._steps:
            resource = step.get("newState")
            if step["op"] != "create" or resource is None or resource["type"] not in _ADOPTED:
                continue
            is_role = resource["type"] == resource_types.ROLE_ASSIGNMENT
            owner = self._ownership.owner(step["urn"])
            whose = self._ownership.holder(step["urn"]) if is_role else owner
            if owner.cluster in ("", self._cluster):
                yield self._match(resource, "" if whose == KEY_VAULT_USER else whose.identity)

    def _match(self, resource: StateResource, owner: str) -> Match:
        inputs = shown(resource.get("inputs", {}))
        if resource["type"] == resource_types.ROLE_ASSIGNMENT:
            return self._role(resource, owner, inputs)
        if resource["type"] in (resource_types.APPLICATION, resource_types.SERVICE_PRINCIPAL):
            found = self._existing.applications.get(owner)
            if found is None:
                return Match(resource, owner, None)
            if resource["type"] == resource_types.APPLICATION:
                return Match(resource, owner, f"/applications/{found.object_id}")
            return Match(resource, owner, found.principal_id and f"/servicePrincipals/{found.principal_id}")
        found_id = self._finders.find(resource["type"], inputs)
        if found_id is not None and resource["type"] == resource_types.CREDENTIAL_SECRET:
            found_id = f"{inputs['cloud']}/{inputs['tenantId']}{found_id}"
        return Match(resource, owner, found_id)

    def _role(self, resource: StateResource, owner: str, inputs: Mapping[str, Any]) -> Match:
        scope, role = inputs["scope"], _last(inputs["roleDefinitionId"])
        principal = inputs.get("principalId") or self._principal(owner)
        found = role_assignments.named(self._azure, scope, inputs["roleAssignmentName"])
        if found is not None:
            is_other = principal is not None and found.principal_id.lower() != principal.lower()
            if is_other and self._lives(found):
                raise CommandError(
                    f"{found.id} has the name of a role assignment of {self._cluster}, and is a role of "
                    f"{found.principal_id}, which lives and is not {name_of(resource['urn'])}'s: the next `up` "
                    "would take it away. Give the hosted cluster's own infraID (`--infra-id`)"
                )
            if found.role != role:
                why = f"another role, {self._role_name(scope, found.role)}"
                return Match(resource, owner, found.id, why, found.role)
            return Match(resource, owner, found.id, "another principal" if is_other else "")
        if principal is None:
            return Match(resource, owner, None)
        # Azure refuses a second assignment of the same role to the same principal at the same scope.
        for each in role_assignments.at(self._azure, scope, f"principalId eq '{principal}'"):
            if each.scope.lower() == scope.lower() and each.role == role:
                return Match(resource, owner, each.id, "another name")
        return Match(resource, owner, None)

    def _role_name(self, scope: str, guid: str) -> str:
        found = self._azure.resource(
            f"{scope}/providers/Microsoft.Authorization/roleDefinitions/{guid}", resource_types.AUTHORIZATION_API
        )
        if found is None:
            return guid
        kind = "the custom role " if found["properties"].get("type") == "CustomRole" else ""
        return f'{kind}"{found["properties"]["roleName"]}"'

    def _lives(self, assignment: RoleAssignmentRecord) -> bool:
        if assignment.principal_type != "ServicePrincipal":
            return True
        return self._azure.directory_object(f"/servicePrincipals/{assignment.principal_id}") is not None

    def _principal(self, owner: str) -> str | None:
        """Object id of whoever has the owner's roles; None if it is not among what was found."""
        if application := self._existing.applications.get(owner):
            return application.principal_id
        identity = self._existing.managed.get(owner)
        return None if identity is None else identity.principal_id


def _last(arm_id: str) -> str:
    return arm_id.rpartition("/")[2].lower()
