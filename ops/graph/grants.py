"""The role assignments in a stack's state, by the component of the identity that holds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from identity import resource_types, roles
from identity.catalogue import OPTIONAL
from identity.naming import control_plane_identity_name
from ops.stack.state import StateResource, name_of

_NAMES: Final = {
    **{role.guid: role.name for role in vars(roles).values() if isinstance(role, roles.Role)},
    roles.MANAGED_HSM_CRYPTO_USER: "Managed HSM Crypto User",
}
# Of the roles with which a control-plane identity attaches a managed one (components/azure/optional_identity.py).
_ATTACHER: Final = "-attacher-roles"

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

    role: str  # Azure's display name; the GUID of a role that this program does not know
    guid: str
    scope: str


def grants(resources: Iterable[StateResource]) -> dict[str, list[RoleAtScope]]:
    """The grants by the name of the component that made them, such as `hc1-ingress`, each in the state's order."""
    found: dict[str, list[RoleAtScope]] = {}
    for resource in resources:
        if resource["type"] in (
            resource_types.ROLE_ASSIGNMENT,
            resource_types.HSM_ROLE_ASSIGNMENT,
        ) and not resource.get("delete"):
            found.setdefault(_holder(resource), []).append(_grant(resource))
    return found


def scope_name(scope: str) -> tuple[str, str]:
    """Name and kind of a scope, such as `("hc1-managed", "resource group")`."""
    if not scope.startswith("/"):
        return scope, "managed HSM"
    kind, _, name = scope.rpartition("/")
    segment = kind.rpartition("/")[2].lower()
    return name, _SCOPE_KINDS.get(segment, segment)


def _holder(assignment: StateResource) -> str:
    """The component that a role assignment belongs to: the parent of its RoleGrants, or its own parent."""
    parent = name_of(assignment.get("parent", ""))
    if assignment["type"] == resource_types.HSM_ROLE_ASSIGNMENT:
        return parent
    if parent.endswith(_ATTACHER):
        return _attacher(parent.removesuffix(_ATTACHER))
    return parent.removesuffix("-roles")


def _attacher(component: str) -> str:
    """The component of the control-plane identity that attaches the managed identity of another component."""
    for row in OPTIONAL:
        if row.attached_by and component.endswith(f"-{row.name}"):
            return control_plane_identity_name(component.removesuffix(f"-{row.name}"), row.attached_by)
    return component


def _grant(resource: StateResource) -> RoleAtScope:
    written = resource.get("inputs", {})
    if resource["type"] == resource_types.HSM_ROLE_ASSIGNMENT:
        guid, scope = str(written["roleDefinition"]), f"{written['hsm']}{written['scope']}"
    else:
        guid, scope = str(written["roleDefinitionId"]).rpartition("/")[2], str(written["scope"])
    return RoleAtScope(_NAMES.get(guid, guid), guid, scope)
