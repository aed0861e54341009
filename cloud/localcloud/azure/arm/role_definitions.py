"""Microsoft.Authorization/roleDefinitions: the built-in roles at every scope, and the tenant's custom roles.

A custom role may be assigned at its assignable scopes and below; to write or delete it, a caller needs the right at
each of them. Its name is unique in the tenant, and an assigned role cannot be deleted (azure-docs
`role-based-access-control/custom-roles.md`, `troubleshooting.md`). Its actions are not compared with those of the
resource providers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.resource_type import Call, ResourceType, collection
from localcloud.azure.authorization import RoleDefinition, built_in_roles
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import public
from localcloud.azure.shared import odata_filter
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.odata_filter import Called, Compared
from localcloud.azure.shared.understood import ANY, Understood
from localcloud.core.arm_ids import is_uuid, role_definition_id
from localcloud.core.clock import now
from localcloud.core.store import Document

_SCOPE: Final = re.compile(r"/subscriptions/[^/]", re.IGNORECASE)
_FILTERED: Final = {"rolename": "roleName", "type": "type"}
_TYPE: Final = "Microsoft.Authorization/roleDefinitions"
_WRITABLE: Final = frozenset({"roleName", "description", "type", "permissions", "assignableScopes"})
_PERMISSIONS: Final = ("actions", "notActions", "dataActions", "notDataActions")


class RoleDefinitions(ResourceType):
    """The roles of the tenant; `assigned_by` is the type of the resources that refer to one by `roleDefinitionId`."""

    name = _TYPE
    extension = True
    read_by_anybody_at_the_root = True
    reads = MappingProxyType(
        {
            "PUT": Understood.of(body={"properties": {ANY: None, "permissions": dict.fromkeys(_PERMISSIONS)}}),
            "list": Understood.of("$filter"),
        }
    )

    def __init__(self, assigned_by: str) -> None:
        self._assigned_by = assigned_by

    async def get(self, call: Call) -> Response:
        built_in = built_in_roles().get(call.path.name.lower())
        if built_in is not None:
            return JSONResponse(_built_in(call.cloud, built_in))
        return JSONResponse(public(_existing(call, call.path.name)))

    async def list(self, call: Call) -> Response:
        wanted, is_below_too = _wanted(call.query.get("$filter", ""))
        scope = call.path.scope or "/"
        definitions = [
            *(_built_in(call.cloud, role) for role in built_in_roles().values()),
            *(
                public(definition)
                for definition in _custom(call)
                if _is_assignable(definition, scope) or (is_below_too and _is_assignable_below(definition, scope))
            ),
        ]
        return collection(
            definition
            for definition in definitions
            if all(definition["properties"][name].lower() == value.lower() for name, value in wanted.items())
        )

    async def put(self, call: Call) -> Response:
        guid = call.path.name.lower()
        if not is_uuid(guid):
            raise ServiceError(400, "InvalidRoleDefinitionId", f"The role definition ID '{guid}' is not valid.")
        if guid in built_in_roles():
            raise errors.not_emulated(f"a change of the built-in role {guid}")
        properties = _checked(call)
        self._require(call, "write", properties["assignableScopes"])
        current = _stored(call, guid)
        names = {definition["properties"]["roleName"] for definition in _custom(call) if definition["name"] != guid}
        if properties["roleName"] in names | {role.role_name for role in built_in_roles().values()}:
            raise ServiceError(
                409,
                "RoleDefinitionWithSameNameExists",
                "A role definition cannot be updated with a name that already exists.",
            )
        instant, caller = now().isoformat(), call.caller.object_id
        created = {"createdOn": instant, "createdBy": caller}
        if current is not None:
            created = {key: current["properties"][key] for key in created}
        role = {
            "id": role_definition_id(call.cloud.subscription_id, guid),
            "name": guid,
            "type": self.name,
            "properties": {**properties, **created, "updatedOn": instant, "updatedBy": caller},
        }
        return JSONResponse(public(call.resources.put(role)), status_code=201)

    async def delete(self, call: Call) -> Response:
        role = _stored(call, call.path.name)
        if role is None:
            return Response(status_code=204)
        self._require(call, "delete", role["properties"]["assignableScopes"])
        assigned = call.resources.below("/", self._assigned_by)
        if any(assignment["properties"]["roleDefinitionId"].lower() == role["id"].lower() for assignment in assigned):
            raise ServiceError(
                400,
                "RoleDefinitionHasAssignments",
                "There are existing role assignments referencing role (code: RoleDefinitionHasAssignments).",
            )
        call.resources.delete(role["id"])
        return JSONResponse(public(role))

    def _require(self, call: Call, operation: str, scopes: Sequence[str]) -> None:
        for scope in scopes:
            call.cloud.authorization.require(call.caller.object_id, f"{self.name}/{operation}", scope)


def require_assignable(call: Call, guid: str, scope: str) -> None:
    """Raise 404 unless there is a role with this GUID that may be assigned at `scope`."""
    if guid not in built_in_roles() and not _is_assignable(_existing(call, guid), scope):
        raise _role_not_found(guid)


def _wanted(text: str) -> tuple[dict[str, str], bool]:
    """Parse a filter: name and type, and whether it includes roles that are assignable below the scope.

    Source: azure-docs `role-based-access-control/role-definitions-list.yml`, "REST API". Raises 501 for any other.
    """
    wanted: dict[str, str] = {}
    is_below_too = False
    try:
        terms = odata_filter.terms(odata_filter.parse(text)) if text.strip() else ()
    except odata_filter.InvalidFilterError:
        raise errors.invalid_filter(text) from None
    for term in terms:
        match term:
            case Compared(member, "eq", str(value)) if member.lower() in _FILTERED:
                wanted[_FILTERED[member.lower()]] = value
            case Called("atscopeandbelow", ()):
                is_below_too = True
            case _:
                raise errors.not_emulated(f"the filter {text!r} of {_TYPE}")
    return wanted, is_below_too


def _checked(call: Call) -> dict[str, Any]:
    """What a PUT may set, complete; raises 400."""
    requested = call.properties
    if unknown := sorted(set(requested) - _WRITABLE):
        raise errors.invalid_content(f"Could not find member '{unknown[0]}' on object of type 'RoleDefinition'")
    scopes, permissions = requested.get("assignableScopes"), requested.get("permissions")
    granted = permissions[0] if isinstance(permissions, list) and len(permissions) == 1 else None
    if (
        not isinstance(requested.get("roleName"), str)
        or requested.get("type", "CustomRole") != "CustomRole"
        or not (_is_texts(scopes) and scopes and all(_SCOPE.match(scope) for scope in scopes))
        or not (isinstance(granted, Mapping) and all(_is_texts(granted.get(key) or []) for key in _PERMISSIONS))
    ):
        raise errors.invalid_content(
            "a custom role has a roleName, one object of permissions, and subscriptions, resource groups or resources "
            "as assignableScopes"
        )
    return {
        "roleName": requested["roleName"],
        "type": "CustomRole",
        "description": requested.get("description"),
        "assignableScopes": scopes,
        "permissions": [{key: granted.get(key) or [] for key in _PERMISSIONS}],
    }


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _custom(call: Call) -> Iterator[Document]:
    return call.resources.below("/", _TYPE)


def _stored(call: Call, guid: str) -> Document | None:
    return call.resources.get(role_definition_id(call.cloud.subscription_id, guid))


def _existing(call: Call, guid: str) -> Document:
    role = _stored(call, guid)
    if role is None:
        raise _role_not_found(guid)
    return role


def _is_assignable(role: Document, scope: str) -> bool:
    """Whether a custom role may be assigned at a scope: one of its own, or below."""
    return any(_is_within(scope, assignable) for assignable in role["properties"]["assignableScopes"])


def _is_assignable_below(role: Document, scope: str) -> bool:
    """Whether one of a custom role's scopes is below a scope."""
    return any(_is_within(assignable, scope) for assignable in role["properties"]["assignableScopes"])


def _is_within(scope: str, other: str) -> bool:
    """Whether a scope is the other one, or below it."""
    return f"{scope.lower().rstrip('/')}/".startswith(f"{other.lower().rstrip('/')}/")


def _built_in(cloud: LocalAzure, role: RoleDefinition) -> dict[str, Any]:
    return {
        "id": role_definition_id(cloud.subscription_id, role.guid),
        "name": role.guid,
        "type": _TYPE,
        "properties": {
            "roleName": role.role_name,
            "type": "BuiltInRole",
            "assignableScopes": ["/"],
            "permissions": [
                {
                    "actions": role.actions,
                    "notActions": role.not_actions,
                    "dataActions": role.data_actions,
                    "notDataActions": role.not_data_actions,
                }
            ],
        },
    }


def _role_not_found(guid: str) -> ServiceError:
    return ServiceError(
        404, "RoleDefinitionDoesNotExist", f"The specified role definition with ID '{guid}' does not exist."
    )
