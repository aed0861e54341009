"""Microsoft.Resources above the resource groups: tenant, subscription, its locations, providers and resources.

Sources: REST reference of Microsoft.Resources 2022-12-01 (subscriptions, tenants, locations) and 2021-04-01 (providers,
resources, the properties of `$filter`). A list of resources depends on the caller, and is never refused. Subscription,
locations and providers are read by whoever has a role below: the cloud controller manager has roles at groups only, and
does not start without its provider's zones (kubernetes-sigs/cloud-provider-azure `pkg/provider/azure.go`, issue 8727).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.resource_type import Call, ResourceType, collection, enumerated, page
from localcloud.azure.arm.resources import ResourceGroups, of_resources
from localcloud.azure.resource_store import KIND, public
from localcloud.azure.shared.refusals import refusal
from localcloud.core.arm_ids import subscription_id
from localcloud.core.documents import document
from localcloud.core.store import Document

_LOCATIONS: Final[Mapping[str, str]] = document(__file__, "regions")
# Emulated types take any version; Azure has a list for each.
_VERSIONS: Final = ("2024-11-01", "2023-07-01", "2023-01-31", "2022-04-01")
# Every listed region has three zones; of the emulated namespaces Azure names them for this one's types.
_ZONED: Final = "Microsoft.Compute"
_ZONES: Final[Mapping[str, Any]] = {
    "zoneMappings": [{"location": region, "zones": ["1", "2", "3"]} for region in _LOCATIONS.values()],
}
_MEMBERS: Final = ("id", "name", "type", "location", "tags", "kind", "sku", "identity", "managedBy", "zones")
_NO_RESOURCES: Final = ("microsoft.resources/", "microsoft.authorization/")
_EXPANDED: Final = {member.lower(): member for member in ("createdTime", "changedTime", "provisioningState")}


class Tenants(ResourceType):
    """The tenant that the caller is in."""

    name = "Microsoft.Resources/tenants"
    listed_by_access = True

    async def list(self, call: Call) -> Response:
        return collection([document(__file__, "tenant", tenant=call.cloud.tenant_id)])


class Subscriptions(ResourceType):
    """The one subscription of the local tenant."""

    name = "Microsoft.Resources/subscriptions"
    listed_by_access = True
    read_with_any_role = True

    async def get(self, call: Call) -> Response:
        return JSONResponse(_subscription(call))

    async def list(self, call: Call) -> Response:
        scope = subscription_id(call.cloud.subscription_id)
        is_seen = call.cloud.authorization.has_any_role(call.caller.object_id, scope)
        return collection([_subscription(call)] if is_seen else [])


class Locations(ResourceType):
    """The regions that the subscription may use."""

    name = "Microsoft.Resources/subscriptions/locations"
    read_with_any_role = True

    async def list(self, call: Call) -> Response:
        subscription = call.cloud.subscription_id
        return collection(
            document(__file__, "location", subscription=subscription, name=name, title=title)
            for name, title in _LOCATIONS.items()
        )


class ResourceProviders(ResourceType):
    """The emulated resource providers, registered unless a test holds another state."""

    name = "Microsoft.Resources/subscriptions/providers"
    read_with_any_role = True

    async def get(self, call: Call) -> Response:
        namespace = enumerated(call.path.name, _namespaces(call))
        if namespace is None:
            raise refusal("InvalidResourceNamespace", namespace=call.path.name)
        return JSONResponse(_provider(call, namespace))

    async def list(self, call: Call) -> Response:
        return collection(_provider(call, namespace) for namespace in _namespaces(call))


class Locks(ResourceType):
    """The held management locks: at a scope, above and below it (Get-AzResourceLock, `-AtScope`)."""

    name = "Microsoft.Authorization/locks"
    extension = True

    async def list(self, call: Call) -> Response:
        scope = f"{call.path.scope}/".lower()
        return collection(
            {
                "id": f"{at}/providers/{self.name}/held",
                "name": "held",
                "type": self.name,
                "properties": {"level": level},
            }
            for at, level in call.cloud.holder.now().locks.items()
            if f"{at}/".startswith(scope) or scope.startswith(f"{at}/")
        )


class ListedResources(ResourceType):
    """Every resource with a location in `parent`, without its properties, as far as the caller may read it."""

    listed_by_access = True

    def __init__(self, parent: str) -> None:
        self.name = f"{parent}/resources"

    async def list(self, call: Call) -> Response:
        return _resources(call, str(call.path.parent_id))


def types() -> tuple[ResourceType, ...]:
    """The types of this module."""
    lists = (ListedResources(parent) for parent in (Subscriptions.name, ResourceGroups.name))
    return Tenants(), Subscriptions(), Locations(), ResourceProviders(), Locks(), *lists


def _namespaces(call: Call) -> dict[str, None]:
    return dict.fromkeys(name.partition("/")[0] for name in call.type_names)


def _provider(call: Call, namespace: str) -> dict[str, Any]:
    types = [name.partition("/")[2] for name in call.type_names if name.startswith(f"{namespace}/")]
    is_held = namespace.lower() in call.cloud.holder.now().unregistered_providers
    state = "NotRegistered" if is_held else "Registered"
    listed = {"locations": list(_LOCATIONS.values()), "apiVersions": list(_VERSIONS)}
    listed |= _ZONES if namespace == _ZONED else {}
    words = {"subscription": call.cloud.subscription_id, "namespace": namespace, "state": state}
    return document(__file__, "provider", **words, types=[{"resourceType": name, **listed} for name in types])


def _resources(call: Call, scope: str) -> Response:
    is_wanted = of_resources(call.query.get("$filter", ""))
    expanded = [member.strip().lower() for member in call.query.get("$expand", "").split(",") if member.strip()]
    if unknown := [member for member in expanded if member not in _EXPANDED]:
        raise errors.not_emulated(f"$expand={unknown[0]} of the list of resources")
    return page(
        call,
        (
            {
                **{name: value for name, value in public(resource).items() if name in _MEMBERS},
                **{_EXPANDED[name]: text for name in expanded if (text := _expansion(resource, _EXPANDED[name]))},
            }
            for resource in _tracked(call, scope)
            if is_wanted(resource)
            and call.cloud.authorization.allowed(call.caller.object_id, f"{resource['type']}/read", resource["id"])
        ),
    )


def _expansion(resource: Document, name: str) -> str | None:
    if name == "provisioningState":
        return str((resource.get("properties") or {}).get("provisioningState") or "Succeeded")
    value: str | None = resource.get(name)
    return value


def _tracked(call: Call, scope: str) -> Iterator[Document]:
    for _, resource in call.cloud.store.items(KIND, f"{scope.lower()}/"):
        # A child has no location of its own; a group is not a resource, and a role assignment belongs to one.
        if resource.get("location") and not resource["type"].lower().startswith(_NO_RESOURCES):
            yield resource


def _subscription(call: Call) -> dict[str, object]:
    return document(__file__, "subscription", subscription=call.cloud.subscription_id, tenant=call.cloud.tenant_id)
