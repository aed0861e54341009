"""Microsoft.Resources: resource groups, seeded or created by a stack."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors, group_deletion
from localcloud.azure.arm.resource_filter import of_groups
from localcloud.azure.arm.resource_type import TRACKED, Call, ResourceType, StoredType, page
from localcloud.azure.resource_store import public
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.understood import Understood
from localcloud.core.store import Document

# azure-docs `resource-name-rules`: 1-90 characters, no dot at the end.
_GROUP_NAME: Final = re.compile(r"[\w().-]{0,89}[\w()-]", re.ASCII)
_OPERATIONS: Final = "Microsoft.Resources/subscriptions/operationresults"


class ResourceGroups(StoredType):
    """Resource groups. A deletion includes the group's content, and completes later (`group_deletion.py`)."""

    name = "Microsoft.Resources/subscriptions/resourceGroups"
    listed_by_access = True
    reads = MappingProxyType(
        {
            "PUT": Understood.of(body={**TRACKED, "managedBy": None, "properties": {"provisioningState": None}}),
            "list": Understood.of("$filter $top $skiptoken"),
        }
    )

    def not_found(self, call: Call) -> ServiceError:
        return errors.resource_group_not_found(call.path.name)

    async def put(self, call: Call) -> Response:
        name, current = call.path.name, call.current
        if not _GROUP_NAME.fullmatch(name):
            raise ServiceError(
                400,
                "InvalidResourceGroup",
                f"The provided resource group name '{name}' has these invalid characters or length: it must have 1-90 "
                "letters, digits, '_', '(', ')', '-' and '.', and not end with '.'.",
            )
        location = str(call.body.get("location") or "").replace(" ", "").lower()
        if not location:
            raise errors.location_required()
        if current is not None:
            errors.refuse_deleting(current)
            if current["location"] != location:
                raise ServiceError(
                    409,
                    "InvalidResourceGroupLocation",
                    f"Invalid resource group location '{location}'. The Resource group already exists in location "
                    f"'{current['location']}'.",
                )
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
        operation = group_deletion.begin(call.cloud, group)
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

    name = _OPERATIONS

    async def get(self, call: Call) -> Response:
        try:
            result = group_deletion.result(call.cloud, call.path.name)
        except KeyError:
            raise errors.resource_not_found(call.path, _OPERATIONS) from None
        if result is None:
            return _accepted(call.path.id, call)
        return JSONResponse({"error": result}, status_code=409) if result else Response(status_code=200)


def _accepted(operation: str, call: Call) -> Response:
    """202 with the place to ask again, relative to ARM's own address; Azure says 15 seconds."""
    location = f"{operation}?api-version={call.query['api-version']}"
    return Response(status_code=202, headers={"Location": location, "Retry-After": "0"})


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return ResourceGroups(), OperationResults()
