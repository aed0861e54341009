"""The role assignments in a stack's state, by holder."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from identity import resource_types, roles
from ops.stack.state import StateResource
from ops.world.ownership import Ownership, ResourceOwner

_NAMES: Final = {
    **{role.guid: role.name for role in vars(roles).values() if isinstance(role, roles.Role)},
    roles.MANAGED_HSM_CRYPTO_USER: "Managed HSM Crypto User",
}
_ASSIGNMENTS: Final = (resource_types.ROLE_ASSIGNMENT, resource_types.HSM_ROLE_ASSIGNMENT)
# By the last segment of the type in an ARM id, which Azure writes in more than one case.
_SCOPE_KINDS: Final = {
    "subscriptions": "subscription",
    "resourcegroups": "resource group",
    "vaults": "key vault",
    "storageaccounts": "storage account",
    "registries": "container registry",
    "userassignedidentities": "managed identity",
}


@dataclass(frozen=True)
class RoleAtScope:
    """A role at a scope: an ARM id, or the address of a managed HSM with a path in it."""

    role: str  # Azure's display name; the GUID of an unknown role
    guid: str
    scope: str


def grants(resources: Collection[StateResource]) -> dict[ResourceOwner, list[RoleAtScope]]:
    """The grants by holder, each in the state's order."""
    ownership = Ownership.of(resources)
    by_holder: dict[ResourceOwner, list[RoleAtScope]] = {}
    for resource in resources:
        if resource["type"] in _ASSIGNMENTS and not resource.get("delete"):
            by_holder.setdefault(ownership.holder(resource["urn"]), []).append(_grant(resource))
    return by_holder


def scope_name(scope: str) -> tuple[str, str]:
    """Name and kind of a scope, such as `("hc1-managed", "resource group")`."""
    if not scope.startswith("/"):
        return scope, "managed HSM"
    kind, _, name = scope.rpartition("/")
    segment = kind.rpartition("/")[2].lower()
    return name, _SCOPE_KINDS.get(segment, segment)


def _grant(resource: StateResource) -> RoleAtScope:
    written = resource.get("inputs", {})
    if resource["type"] == resource_types.HSM_ROLE_ASSIGNMENT:
        guid, scope = str(written["roleDefinition"]), f"{written['hsm']}{written['scope']}"
    else:
        guid, scope = str(written["roleDefinitionId"]).rpartition("/")[2], str(written["scope"])
    return RoleAtScope(_NAMES.get(guid, guid), guid, scope)
