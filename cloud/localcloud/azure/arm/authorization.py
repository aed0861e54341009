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

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure import conditions
from localcloud.azure.arm import errors
from localcloud.azure.arm.path import ArmPath
from localcloud.azure.arm.resource_type import Call, ResourceType, StoredType, collection, enumerated
from localcloud.azure.arm.role_definitions import RoleDefinitions, require_assignable
from localcloud.azure.authorization import Attributes, role_guid, scope_and_above
from localcloud.azure.resource_store import Resources, public
from localcloud.azure.shared import odata_filter
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.odata_filter import Called, Compared
from localcloud.azure.shared.understood import Understood
from localcloud.core.arm_ids import is_uuid, role_definition_id
from localcloud.core.clock import now
from localcloud.core.store import Document

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
    reads = MappingProxyType({"PUT": Understood.of(body="properties"), "list": Understood.of("$filter")})

    def not_found(self, call: Call) -> ServiceError:
        return ServiceError(404, "RoleAssignmentNotFound", f"The role assignment '{call.path.name}' is not found.")

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
        current = call.current or _named(call.resources, call.path.name)
        if current is not None:
            return JSONResponse(public(call.resources.put(_updated(current, properties, call))))
        _refuse_equal(call, properties)
        _find_principal(call, properties)
        instant = now().isoformat()
        scope = _scope(call.path)
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
    raise errors.bad_request(
        f"The filter '{text}' is not supported. Supported filters are either 'atScope()' or 'principalId eq "
        "'{value}' or assignedTo('{value}')'."
    )


def _checked(call: Call) -> dict[str, Any]:
    """What a PUT may set, with every rule that needs the body alone; raises 400."""
    properties = call.properties
    if not is_uuid(call.path.name):
        raise ServiceError(
            400,
            "InvalidRoleAssignmentId",
            f"The role assignment ID '{call.path.name}' is not valid. The role assignment ID must be a GUID.",
        )
    if unknown := sorted(set(properties) - _WRITABLE):
        raise errors.invalid_content(f"Could not find member '{unknown[0]}' on object of type 'RoleAssignment'")
    if not is_uuid(properties.get("principalId")):
        raise ServiceError(400, "InvalidPrincipalId", "A valid principal ID must be provided for role assignment.")
    role = str(properties.get("roleDefinitionId") or "")
    if "/providers/microsoft.authorization/roledefinitions/" not in role.lower() or not is_uuid(role_guid(role)):
        raise ServiceError(400, "InvalidRoleDefinitionId", f"The role definition ID '{role}' is not valid.")
    require_assignable(call, role_guid(role), _scope(call.path))
    kind = enumerated(properties.get("principalType", "ServicePrincipal"), _PRINCIPAL_TYPES)
    if kind is None:
        raise ServiceError(
            400, "InvalidPrincipalType", f"The principal type '{properties['principalType']}' is not supported."
        )
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


def _check_condition(condition: object, version: object) -> None:
    """Refuse an invalid condition without a reason, as Azure does (azure-docs `conditions-troubleshoot.md`)."""
    refusal = ServiceError(400, "InvalidRoleAssignmentCondition", "The given role assignment condition is invalid.")
    if version != _CONDITION_VERSION or not isinstance(condition, str):
        raise refusal
    try:
        conditions.parse(condition)
    except conditions.InvalidConditionError:
        raise refusal from None


def _attributes(properties: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of a role assignment that conditions may use."""
    attributes = {
        "RoleDefinitionId": properties.get("roleDefinitionId"),
        "PrincipalId": properties.get("principalId"),
        "PrincipalType": properties.get("principalType"),
    }
    return {name: value.rpartition("/")[2] for name, value in attributes.items() if isinstance(value, str)}


def _named(resources: Resources, name: str) -> Document | None:
    """The assignment of this name at any scope: names are unique in the tenant (azure-docs `role-assignments`)."""
    known = resources.store.get(_NAMES, name.lower())
    return resources.get(known["id"]) if known else None


def _refuse_equal(call: Call, properties: Mapping[str, Any]) -> None:
    for assignment in _at(call.resources, _scope(call.path)):
        if _same_grant(assignment["properties"], properties):
            raise ServiceError(
                409,
                "RoleAssignmentExists",
                "The role assignment already exists. The ID of the existing role assignment is "
                f"{assignment['name'].replace('-', '')}.",
            )


def _updated(current: Document, properties: dict[str, Any], call: Call) -> Document:
    """The existing assignment with a new description and condition; principal, role and scope cannot change."""
    before = current["properties"]
    same_type = properties.get("principalType", before["principalType"]) == before["principalType"]
    same_scope = before["scope"].lower() == _scope(call.path).lower()
    if not same_type or not same_scope or not _same_grant(before, properties):
        raise ServiceError(
            400,
            "RoleAssignmentUpdateNotPermitted",
            "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
        )
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
            raise ServiceError(
                400,
                "PrincipalNotFound",
                f"Principal {principal_id.replace('-', '')} does not exist in the directory {call.cloud.tenant_id}. "
                "Check that you have the correct principal ID. If you are creating this principal and then immediately "
                "assigning a role, this error might be related to a replication delay. In this case, set the role "
                "assignment principalType property to a value, such as ServicePrincipal, User, or Group.  See "
                "https://aka.ms/docs-principaltype",
            )
        properties["principalType"] = "ServicePrincipal"
    elif principal is not None and properties["principalType"] != "ServicePrincipal":
        raise ServiceError(
            400,
            "UnmatchedPrincipalType",
            f"The PrincipalId '{principal_id.replace('-', '')}' has type 'ServicePrincipal' , which is different from "
            f"specified PrinciaplType '{properties['principalType']}'.",
        )


def _same_grant(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(
        one["principalId"].lower() == other["principalId"].lower()
        and role_guid(one["roleDefinitionId"]) == role_guid(other["roleDefinitionId"])
    )


def _at(resources: Resources, scope: str) -> Iterator[Document]:
    return resources.below(f"{scope.rstrip('/')}/providers/Microsoft.Authorization", RoleAssignments.name)


def _scope(path: ArmPath) -> str:
    return path.scope or "/"
