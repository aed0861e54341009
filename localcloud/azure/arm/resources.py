"""Microsoft.Resources: the subscription and its resource groups, which exist before any stack and are only read."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.resource_type import Call, ResourceType, collection
from localcloud.azure.resource_store import public


class Subscriptions(ResourceType):
    """The one subscription of the local tenant."""

    name = "Microsoft.Resources/subscriptions"

    async def get(self, call: Call) -> Response:
        return JSONResponse(_subscription(call))

    async def list(self, call: Call) -> Response:
        return collection([_subscription(call)])


class ResourceGroups(ResourceType):
    """Resource groups: GET, HEAD and list."""

    name = "Microsoft.Resources/subscriptions/resourceGroups"

    async def get(self, call: Call) -> Response:
        group = call.current
        if group is None:
            raise errors.resource_group_not_found(call.path.name)
        return JSONResponse(public(group))

    async def list(self, call: Call) -> Response:
        # A group prints a shorter type than its actions have.
        groups = call.resources.below(str(call.path.parent_id), "Microsoft.Resources/resourceGroups")
        return collection(public(group) for group in groups)


def _subscription(call: Call) -> dict[str, object]:
    subscription = call.cloud.subscription_id
    return {
        "id": f"/subscriptions/{subscription}",
        "subscriptionId": subscription,
        "tenantId": call.cloud.tenant_id,
        "displayName": "local",
        "state": "Enabled",
    }


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return Subscriptions(), ResourceGroups()
