"""Microsoft.Authorization: role assignments, which `localcloud.azure.authorization` reads.

Sources of rules and messages: azure-docs `role-based-access-control/troubleshooting` and `role-assignments`; issues
Azure-Samples/graphrag-accelerator 168 (update), Azure-Samples/azure-search-openai-demo 1091 and Azure/azure-cli 8599
(exists), Azure/azure-dev 3581 (principal types).

Scope, principal and role together make an assignment; its name is free but unique in the tenant. Deleting a principal
leaves its assignments behind. With `principalType` ARM takes the caller's word for the principal, without it the
principal is looked up, which fails until it is replicated. Whether the caller's own assignments allow a write or a
delete may depend on a condition about role, principal and its type; without `principalType` in the request such a
condition is not met (azurerm `role_assignment`, argument `principal_type`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure import conditions
from localcloud.azure.arm import errors
from localcloud.azure.arm.path import ArmPath
from localcloud.azure.arm.resource_type import Call, ResourceType, StoredType, collection, enumerated
from localcloud.azure.authorization import (
    PERMISSIONS,
    Attributes,
    RoleDefinition,
    built_in_roles,
    role_guid,
    scope_and_above,
)
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources, public
from localcloud.azure.shared import odata_filter
from localcloud.azure.shared.odata_filter import Called, Compared
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.core.arm_ids import is_uuid, role_definition_id
from localcloud.core.clock import now
from localcloud.core.documents import document
from localcloud.core.store import Document

# Microsoft.Authorization/roleDefinitions: the built-in roles at every scope, and the tenant's custom roles.
#
# A custom role may be assigned at its assignable scopes and below; to write or delete it, a caller needs the right at
# each of them. Its name is unique in the tenant, and an assigned role cannot be deleted (azure-docs
# `role-based-access-control/custom-roles.md`, `troubleshooting.md`). Its actions are not compared with those of the
# resource providers.

_SCOPE: Final = re.compile(r"/subscriptions/[^/]", re.IGNORECASE)
_FILTERED: Final = {"rolename": "roleName", "type": "type"}
_TYPE: Final = "Microsoft.Authorization/roleDefinitions"
_WRITABLE_OF_A_ROLE: Final = frozenset({"roleName", "description", "type", "permissions", "assignableScopes"})


class RoleDefinitions(ResourceType):
    """The roles of the tenant; `assigned_by` is the type of the resources that refer to one by `roleDefinitionId`."""

    name = _TYPE
    extension = True
    read_by_anybody_at_the_root = True

    def __init__(self, assigned_by: str) -> None:
        self._assigned_by = assigned_by

    async def get(self, call: Call) -> Response:
        built_in = built_in_roles().get(call.path.name.lower())
        if built_in is not None:
            return JSONResponse(_built_in(call.cloud, built_in))
        return JSONResponse(public(_existing(call, call.path.name)))

    async def list(self, call: Call) -> Response:
        wanted, is_below_too = _wanted_roles(call.query.get("$filter", ""))
        scope = call.path.scope or "/"
        definitions = [
            *(_built_in(call.cloud, role) for role in built_in_roles().values()),
            *(
                public(definition)
                for definition in _custom(call)
                if any(
                    _is_within(scope, own) or (is_below_too and _is_within(own, scope))
                    for own in definition["properties"]["assignableScopes"]
                )
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
            raise refusal("InvalidRoleDefinitionId", role=guid)
        if guid in built_in_roles():
            raise errors.not_emulated(f"a change of the built-in role {guid}")
        properties = _checked_role(call)
        self._require(call, "write", properties["assignableScopes"])
        current = _stored(call, guid)
        names = {definition["properties"]["roleName"] for definition in _custom(call) if definition["name"] != guid}
        if properties["roleName"] in names | {role.role_name for role in built_in_roles().values()}:
            raise refusal("RoleDefinitionWithSameNameExists")
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
            raise refusal("RoleDefinitionHasAssignments")
        call.resources.delete(role["id"])
        return JSONResponse(public(role))

    def _require(self, call: Call, operation: str, scopes: Sequence[str]) -> None:
        for scope in scopes:
            call.cloud.authorization.require(call.caller.object_id, f"{self.name}/{operation}", scope)


def require_assignable(call: Call, guid: str, scope: str) -> None:
    """Raise 404 unless there is a role with this GUID that may be assigned at `scope`."""
    if guid not in built_in_roles() and not _is_assignable(_existing(call, guid), scope):
        raise refusal("RoleDefinitionDoesNotExist", role=guid)


def _wanted_roles(text: str) -> tuple[dict[str, str], bool]:
    """Parse a filter: name and type, and whether it includes roles that are assignable below the scope.

    Source: azure-docs `role-based-access-control/role-definitions-list.yml`, "REST API". Raises 501 for any other.
    """
    wanted: dict[str, str] = {}
    is_below_too = False
    try:
        terms = odata_filter.terms(odata_filter.parse(text)) if text.strip() else ()
    except odata_filter.InvalidFilterError:
        raise refusal("InvalidFilterInQueryString", term=text) from None
    for term in terms:
        match term:
            case Compared(member, "eq", str(value)) if member.lower() in _FILTERED:
                wanted[_FILTERED[member.lower()]] = value
            case Called("atscopeandbelow", ()):
                is_below_too = True
            case _:
                raise errors.not_emulated(f"the filter {text!r} of {_TYPE}")
    return wanted, is_below_too


def _checked_role(call: Call) -> dict[str, Any]:
    """What a PUT may set, complete; raises 400."""
    requested = call.properties
    if unknown := sorted(set(requested) - _WRITABLE_OF_A_ROLE):
        raise errors.invalid_content(f"Could not find member '{unknown[0]}' on object of type 'RoleDefinition'")
    scopes, permissions = requested.get("assignableScopes"), requested.get("permissions")
    granted = permissions[0] if isinstance(permissions, list) and len(permissions) == 1 else None
    if (
        not requested.get("roleName")
        or requested.get("type", "CustomRole") != "CustomRole"
        or not (scopes and all(_SCOPE.match(scope) for scope in scopes))
        or not isinstance(granted, Mapping)
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
        "permissions": [{key: granted.get(key) or [] for key in PERMISSIONS}],
    }


def _custom(call: Call) -> Iterator[Document]:
    return call.resources.below("/", _TYPE)


def _stored(call: Call, guid: str) -> Document | None:
    return call.resources.get(role_definition_id(call.cloud.subscription_id, guid))


def _existing(call: Call, guid: str) -> Document:
    role = _stored(call, guid)
    if role is None:
        raise refusal("RoleDefinitionDoesNotExist", role=guid)
    return role


def _is_assignable(role: Document, scope: str) -> bool:
    """Whether a custom role may be assigned at a scope: one of its own, or below."""
    return any(_is_within(scope, assignable) for assignable in role["properties"]["assignableScopes"])


def _is_within(scope: str, other: str) -> bool:
    """Whether a scope is the other one, or below it."""
    return f"{scope.lower().rstrip('/')}/".startswith(f"{other.lower().rstrip('/')}/")


def _built_in(cloud: LocalAzure, role: RoleDefinition) -> dict[str, Any]:
    granted = (role.actions, role.not_actions, role.data_actions, role.not_data_actions)
    words = {"id": role_definition_id(cloud.subscription_id, role.guid), "name": role.guid, "type": _TYPE}
    permissions = dict(zip(PERMISSIONS, granted, strict=True))
    return document(__file__, "built-in role", **words, title=role.role_name, permissions=permissions)


# The first version is no longer accepted (azure-docs `conditions-troubleshoot.md`).
_CONDITION_VERSION: Final = "2.0"
_PRINCIPAL_TYPES: Final = frozenset({"User", "Group", "ServicePrincipal", "ForeignGroup", "Device"})
_WRITABLE: Final = frozenset(
    {"principalId", "principalType", "roleDefinitionId", "scope", "description", "condition", "conditionVersion"}
)
_AT_SCOPE: Final = Called("atscope", ())
# The scope by assignment name; an entry may outlive its assignment.
_NAMES: Final = "arm-role-assignment-name"


class RoleAssignments(StoredType):
    """Role assignments at any scope."""

    name = "Microsoft.Authorization/roleAssignments"
    extension = True
    checks_conditions = True

    def not_found(self, call: Call) -> ServiceError:
        return refusal("RoleAssignmentNotFound", name=call.path.name)

    async def list(self, call: Call) -> Response:
        scope = _scope(call.path)
        *ancestors, _ = scope_and_above(scope)
        above = [assignment for ancestor in ancestors for assignment in _at(call.resources, ancestor)]
        assignments = [*above, *call.resources.below(scope, self.name)]
        at_scope, principals = _wanted(call)
        if at_scope:
            assignments = [*above, *_at(call.resources, scope)]
        if principals is not None:
            assignments = [
                assignment
                for assignment in assignments
                if assignment["properties"]["principalId"].lower() in principals
            ]
        return collection(public(assignment) for assignment in assignments)

    async def put(self, call: Call) -> Response:
        self._require(call, "write", Attributes(request=_attributes(call.properties)))
        properties = _checked(call)
        # Names are unique in the tenant (azure-docs `role-assignments`).
        known = call.resources.store.get(_NAMES, call.path.name.lower())
        current = call.current or (call.resources.get(known["id"]) if known else None)
        if current is not None:
            return JSONResponse(public(call.resources.put(_updated(current, properties, call))))
        scope = _scope(call.path)
        for assignment in _at(call.resources, scope):
            if _same_grant(assignment["properties"], properties):
                raise refusal("RoleAssignmentExists", assignment=assignment["name"].replace("-", ""))
        _find_principal(call, properties)
        instant = now().isoformat()
        assignment = {
            "id": f"{scope.rstrip('/')}/providers/{self.name}/{call.path.name}",
            "name": call.path.name,
            "type": self.name,
            "properties": {
                **properties,
                "scope": scope,
                "createdOn": instant,
                "updatedOn": instant,
                "createdBy": call.caller.object_id,
                "updatedBy": call.caller.object_id,
            },
        }
        with call.cloud.store.transaction():
            call.cloud.store.put(_NAMES, call.path.name.lower(), {"id": assignment["id"]})
            call.resources.put(assignment)
        return JSONResponse(public(assignment), status_code=201)

    async def delete(self, call: Call) -> Response:
        assignment = call.current
        if assignment is None:
            return Response(status_code=204)
        self._require(call, "delete", Attributes(resource=_attributes(assignment["properties"])))
        call.resources.delete(call.path.id)
        return JSONResponse(public(assignment))

    def _require(self, call: Call, operation: str, attributes: Attributes) -> None:
        call.cloud.authorization.require_condition(
            call.caller.object_id, f"{self.name}/{operation}", call.path.authorization_scope, attributes
        )


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return RoleAssignments(), RoleDefinitions(RoleAssignments.name)


def _wanted(call: Call) -> tuple[bool, Collection[str] | None]:
    """Apply a filter: what is in effect at the scope, or what these principals have; raises 400.

    `assignedTo('…')` includes what a user's groups have. `principalId eq '…'` stands alone (azure-powershell issue
    20384); the message is that of azure-rest-api-specs issue 28255.
    """
    text = call.query.get("$filter", "")
    if not text.strip():
        return False, None
    try:
        terms = odata_filter.terms(odata_filter.parse(text))
    except odata_filter.InvalidFilterError:
        terms = ()
    at_scope = _AT_SCOPE in terms
    match [term for term in terms if term != _AT_SCOPE]:
        case [] if at_scope:
            return True, None
        case [Called("assignedto", (str(principal),))]:
            return at_scope, {principal.lower(), *call.cloud.people.groups_of(principal.lower())}
        case [Compared(member, "eq", str(principal))] if member.lower() == "principalid" and not at_scope:
            return False, {principal.lower()}
    raise refusal("BadRequest filter of role assignments", filter=text)


def _checked(call: Call) -> dict[str, Any]:
    """What a PUT may set, with every rule that needs the body alone; raises 400."""
    properties = call.properties
    if not is_uuid(call.path.name):
        raise refusal("InvalidRoleAssignmentId", name=call.path.name)
    if unknown := sorted(set(properties) - _WRITABLE):
        raise errors.invalid_content(f"Could not find member '{unknown[0]}' on object of type 'RoleAssignment'")
    if not is_uuid(properties.get("principalId")):
        raise refusal("InvalidPrincipalId")
    role = str(properties.get("roleDefinitionId") or "")
    if "/providers/microsoft.authorization/roledefinitions/" not in role.lower() or not is_uuid(role_guid(role)):
        raise refusal("InvalidRoleDefinitionId", role=role)
    require_assignable(call, role_guid(role), _scope(call.path))
    kind = enumerated(properties.get("principalType", "ServicePrincipal"), _PRINCIPAL_TYPES)
    if kind is None:
        raise refusal("InvalidPrincipalType", type=properties["principalType"])
    condition = properties.get("condition")
    answered = {
        "description": None,
        **properties,
        **({"principalType": kind} if "principalType" in properties else {}),
        "principalId": properties["principalId"].lower(),
        "condition": condition,
        "conditionVersion": None if condition is None else properties.get("conditionVersion") or _CONDITION_VERSION,
    }
    if condition is not None:
        _check_condition(condition, answered["conditionVersion"])
    return {**answered, "roleDefinitionId": role_definition_id(call.cloud.subscription_id, role_guid(role))}


def _check_condition(condition: str, version: object) -> None:
    """Refuse an invalid condition without a reason, as Azure does (azure-docs `conditions-troubleshoot.md`)."""
    try:
        conditions.parse(condition)
        is_valid = version == _CONDITION_VERSION
    except conditions.InvalidConditionError:
        is_valid = False
    if not is_valid:
        raise refusal("InvalidRoleAssignmentCondition")


def _attributes(properties: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of a role assignment that conditions may use."""
    attributes = {
        "RoleDefinitionId": properties.get("roleDefinitionId"),
        "PrincipalId": properties.get("principalId"),
        "PrincipalType": properties.get("principalType"),
    }
    return {name: value.rpartition("/")[2] for name, value in attributes.items() if isinstance(value, str)}


def _updated(current: Document, properties: dict[str, Any], call: Call) -> Document:
    """The existing assignment with a new description and condition; principal, role and scope cannot change."""
    before = current["properties"]
    same_type = properties.get("principalType", before["principalType"]) == before["principalType"]
    same_scope = before["scope"].lower() == _scope(call.path).lower()
    if not same_type or not same_scope or not _same_grant(before, properties):
        raise refusal("RoleAssignmentUpdateNotPermitted")
    changed = {
        **{key: properties[key] for key in ("description", "condition", "conditionVersion")},
        "updatedOn": now().isoformat(),
        "updatedBy": call.caller.object_id,
    }
    return {**current, "properties": {**before, **changed}}


def _find_principal(call: Call, properties: dict[str, Any]) -> None:
    """Look the principal up as ARM does and fill in its type; raises 400."""
    principal_id = properties["principalId"]
    principal = call.cloud.directory.service_principal(principal_id)
    if "principalType" not in properties:
        if not call.cloud.directory.is_replicated(principal_id):
            raise refusal("PrincipalNotFound", principal=principal_id.replace("-", ""), tenant=call.cloud.tenant_id)
        properties["principalType"] = "ServicePrincipal"
    elif principal is not None and properties["principalType"] != "ServicePrincipal":
        words = {"principal": principal_id.replace("-", ""), "type": properties["principalType"]}
        raise refusal("UnmatchedPrincipalType", **words)


def _same_grant(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(
        one["principalId"].lower() == other["principalId"].lower()
        and role_guid(one["roleDefinitionId"]) == role_guid(other["roleDefinitionId"])
    )


def _at(resources: Resources, scope: str) -> Iterator[Document]:
    return resources.below(f"{scope.rstrip('/')}/providers/Microsoft.Authorization", RoleAssignments.name)


def _scope(path: ArmPath) -> str:
    return path.scope or "/"
