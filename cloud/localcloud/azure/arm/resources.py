"""Microsoft.Resources: resource groups, seeded or created by a stack."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.managedidentity import IDENTITIES
from localcloud.azure.arm.network_rules import SECURITY_GROUPS, SUBNETS, reference
from localcloud.azure.arm.resource_type import Call, ResourceType, StoredType, page, plain_location
from localcloud.azure.arm.storage import empty_account
from localcloud.azure.blob.contents import ACCOUNTS
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import KIND, Resources, public
from localcloud.azure.shared import odata_filter
from localcloud.azure.shared.odata_filter import Called, Compared, Expression, Joined, Path
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.core import clock
from localcloud.core.store import Document

# `$filter` of the lists of resource groups and of resources.
#
# Sources: REST reference 2021-04-01, "Resource Groups - List" (a tag, with or without its value; azure-rest-api-specs
# issue 3853) and "Resources - List" (location, resourceType, name, resourceGroup with `eq` or `ne`, `substringof` and
# `startswith`, or a tag alone; azure-powershell issue 293).

Wanted = Callable[[Document], bool]
_MEMBERS: Final = frozenset({"resourcetype", "name", "location", "resourcegroup"})
_TAG: Final = frozenset({"tagname", "tagvalue"})


def of_groups(text: str) -> Wanted:
    """The condition on a resource group; raises 400 `InvalidFilterInQueryString`."""
    return _tagged(_parsed(text), text) if text.strip() else _any


def of_resources(text: str) -> Wanted:
    """The condition on a resource; raises 400 `InvalidFilterInQueryString`."""
    if not text.strip():
        return _any
    expression = _parsed(text)
    if any(isinstance(term, Compared) and term.member.lower() in _TAG for term in odata_filter.terms(expression)):
        return _tagged(expression, text)
    return _condition(expression, text)


def _any(_: Document) -> bool:
    return True


def _parsed(text: str) -> Expression:
    try:
        return odata_filter.parse(text)
    except odata_filter.InvalidFilterError:
        raise refusal("InvalidFilterInQueryString", term=text) from None


def _tagged(expression: Expression, text: str) -> Wanted:
    """Tag names are compared without case, their values with it (azure-docs `tag-resources`)."""
    asked: dict[str, str] = {}
    for term in odata_filter.terms(expression):
        match term:
            case Compared(member, "eq", str(value)) if member.lower() in _TAG - asked.keys():
                asked[member.lower()] = value
            case _:
                raise refusal("InvalidFilterInQueryString", term=text)
    if "tagname" not in asked:
        raise refusal("InvalidFilterInQueryString", term=text)

    def holds(resource: Document) -> bool:
        values = [value for name, value in (resource.get("tags") or {}).items() if name.lower() == name_asked]
        return bool(values) and asked.get("tagvalue", values[0]) in values

    name_asked = asked["tagname"].lower()
    return holds


def _condition(expression: Expression, text: str) -> Wanted:
    match expression:
        case Joined(operator, conditions):
            each_of = [_condition(condition, text) for condition in conditions]
            joined = all if operator == "and" else any
            return lambda resource: joined(holds(resource) for holds in each_of)
        case Compared(member, "eq" | "ne" as operator, str(value)) if member.lower() in _MEMBERS:
            is_equal = operator == "eq"
            return lambda resource: (_member(resource, member) == value.lower()) is is_equal
        case Called("substringof", (str(value), Path(member))) if member.lower() in _MEMBERS:
            return lambda resource: value.lower() in _member(resource, member)
        case Called("startswith", (Path(member), str(value))) if member.lower() in _MEMBERS:
            return lambda resource: _member(resource, member).startswith(value.lower())
    raise refusal("InvalidFilterInQueryString", term=text)


def _member(resource: Document, name: str) -> str:
    values = {
        "resourcetype": resource["type"],
        "name": resource["name"],
        "location": resource["location"],
        "resourcegroup": resource["id"].split("/")[4],
    }
    return str(values[name.lower()]).lower()


# The deletion of a resource group with its content, which Azure completes long after it has accepted it.
#
# A deletion is a document with its completion time. Every request to ARM first completes what is due, so nothing has to
# run in between. Sources: REST reference of resource groups (202 with Location), azure-docs
# `resource-manager/management/delete-resource-group`.

_DELETIONS: Final = "arm-deletion"
# Types whose own deletion does more than a group's does here: soft delete, node resource groups.
_KEPT_OUT: Final = ("microsoft.keyvault/vaults", "microsoft.containerservice/managedclusters")


def begin_deletion(cloud: LocalAzure, group: Document) -> str:
    """Begin to delete a group; returns the operation's id. Raises 501 for content whose deletion is not emulated."""
    content = _content(cloud, group)
    for resource in content:
        if resource["type"].lower() in _KEPT_OUT:
            raise errors.not_emulated(f"the deletion of a resource group that holds a {resource['type']}")
    operation = uuid.uuid4().hex
    ends = clock.now() + timedelta(seconds=cloud.faults.resource_group_deletion)
    with cloud.store.transaction():
        Resources(cloud.store).put({**group, "properties": {"provisioningState": "Deleting"}})
        cloud.store.put(_DELETIONS, operation, {"group": group["id"], "ends": ends.isoformat()})
    return operation


def end_due_deletions(cloud: LocalAzure) -> None:
    """Delete the groups whose time has come."""
    for operation, deletion in cloud.store.items(_DELETIONS):
        if "result" not in deletion and datetime.fromisoformat(deletion["ends"]) <= clock.now():
            with cloud.store.transaction():
                cloud.store.put(_DELETIONS, operation, {**deletion, "result": _deleted(cloud, deletion["group"])})


def _deleted(cloud: LocalAzure, group_id: str) -> dict[str, Any]:
    """Delete the group, unless a resource outside refers to its content: then all of it stays."""
    resources = Resources(cloud.store)
    group = resources.get(group_id)
    if group is None:
        return {}
    if used := sorted(_used_from_outside(cloud, group)):
        resources.put({**group, "properties": {"provisioningState": "Succeeded"}})
        blocked = refusal("ResourceGroupDeletionBlocked", group=group["name"], used=",".join(used))
        return {"code": blocked.code, "message": blocked.message}
    for resource in _content(cloud, group):
        if resource["type"] == IDENTITIES:
            cloud.directory.delete_service_principal(resource["properties"]["principalId"])
        if resource["type"] == ACCOUNTS:
            empty_account(cloud.store, resource["name"])
    resources.delete(group_id)
    return {}


def _used_from_outside(cloud: LocalAzure, group: Document) -> set[str]:
    """Security groups of subnets that are in another group."""
    inside = f"{group['id'].lower()}/"
    subnets = Resources(cloud.store).below(f"/subscriptions/{cloud.subscription_id}", SUBNETS)
    used = {
        reference(subnet["properties"].get("networkSecurityGroup")) or ""
        for subnet in subnets
        if not subnet["id"].lower().startswith(inside)
    }
    return {
        f"{SECURITY_GROUPS}/{resource_id.rpartition('/')[2]}"
        for resource_id in used
        if resource_id.lower().startswith(inside)
    }


def _content(cloud: LocalAzure, group: Document) -> list[Document]:
    return [document for _, document in cloud.store.items(KIND, f"{group['id'].lower()}/")]


# azure-docs `resource-name-rules`: 1-90 characters, no dot at the end.
_GROUP_NAME: Final = re.compile(r"[\w().-]{0,89}[\w()-]", re.ASCII)


class ResourceGroups(StoredType):
    """Resource groups. A deletion includes the group's content, and completes later."""

    name = "Microsoft.Resources/subscriptions/resourceGroups"
    listed_by_access = True

    def not_found(self, call: Call) -> ServiceError:
        return refusal("ResourceGroupNotFound", name=call.path.name)

    async def put(self, call: Call) -> Response:
        name, current = call.path.name, call.current
        if not _GROUP_NAME.fullmatch(name):
            raise refusal("InvalidResourceGroup", name=name)
        location = plain_location(str(call.body.get("location") or ""))
        if not location:
            raise refusal("LocationRequired")
        if current is not None:
            errors.refuse_deleting(current)
            if current["location"] != location:
                raise refusal("InvalidResourceGroupLocation", asked=location, location=current["location"])
        group: Document = {
            "id": f"/subscriptions/{call.cloud.subscription_id}/resourceGroups/{name}",
            "name": name,
            "type": "Microsoft.Resources/resourceGroups",
            **(current or {}),
            "location": location,
            "tags": call.body.get("tags") or {},
            "properties": {"provisioningState": "Succeeded"},
        }
        if call.body.get("managedBy") is not None:
            group["managedBy"] = call.body["managedBy"]
        return JSONResponse(public(call.resources.put(group)), status_code=200 if current else 201)

    async def delete(self, call: Call) -> Response:
        group = self.existing(call)
        errors.refuse_deleting(group)
        operation = begin_deletion(call.cloud, group)
        return _accepted(f"/subscriptions/{call.cloud.subscription_id}/operationresults/{operation}", call)

    async def list(self, call: Call) -> Response:
        # A group's type is shorter than that of its actions.
        groups = call.resources.below(str(call.path.parent_id), "Microsoft.Resources/resourceGroups")
        is_wanted = of_groups(call.query.get("$filter", ""))
        return page(
            call,
            (
                public(group)
                for group in groups
                if is_wanted(group)
                and call.cloud.authorization.allowed(call.caller.object_id, f"{self.name}/read", group["id"])
            ),
        )


class OperationResults(ResourceType):
    """The result of a deletion: 202 while it is in progress."""

    name = "Microsoft.Resources/subscriptions/operationresults"

    async def get(self, call: Call) -> Response:
        deletion = call.cloud.store.get(_DELETIONS, call.path.name)
        if deletion is None:
            raise errors.resource_not_found(call.path, self.name)
        if (result := deletion.get("result")) is None:
            return _accepted(call.path.id, call)
        return JSONResponse({"error": result}, status_code=409) if result else Response(status_code=200)


def _accepted(operation: str, call: Call) -> Response:
    """202 with the place to ask again, relative to ARM's own address; Azure says 15 seconds."""
    location = f"{operation}?api-version={call.query['api-version']}"
    return Response(status_code=202, headers={"Location": location, "Retry-After": "0"})


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return ResourceGroups(), OperationResults()
