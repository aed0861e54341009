"""The interface of a resource type of the local ARM: one class per type, one method per HTTP method.

The application has authenticated and authorised the caller and found the resource group and the parent before a method
runs. A method that a type does not have is answered `NotEmulated`, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.path import ArmPath
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources, public
from localcloud.azure.tenant.tokens import Caller
from localcloud.core.clouds import Cloud
from localcloud.core.store import Document

# Members that ARM itself reads in any resource; others are refused before a provider sees them.
_ENVELOPE = frozenset(
    {"id", "name", "type", "location", "tags", "properties", "identity", "sku", "kind", "plan", "zones", "etag"}
    | {"managedBy", "extendedLocation", "systemData"}
)


@dataclass(frozen=True)
class Call:
    """One authorised request.

    Attributes:
        resources: the store of ARM documents.
        path: the parsed request path.
        body: the JSON body, {} when there is none.
        query: the query parameters.
        asked: the cloud whose names the client uses.
        type_names: every resource type that is emulated.
    """

    cloud: LocalAzure
    resources: Resources
    path: ArmPath
    caller: Caller
    body: dict[str, Any]
    query: Mapping[str, str]
    asked: Cloud
    type_names: Sequence[str]

    @property
    def current(self) -> Document | None:
        """The stored resource before this request, None if there is none."""
        return self.resources.get(self.path.id)

    @property
    def properties(self) -> dict[str, Any]:
        """`properties` of the body; raises 400 when that is not an object."""
        properties = self.body.get("properties", {})
        if not isinstance(properties, dict):
            raise errors.invalid_content("properties: a JSON object is expected")
        return properties


class ResourceType:
    """A resource type; `name` in Azure's own letter case. `extension`: it hangs on any other scope.

    `listed_by_access`: anybody may list it, and sees what they have access to. `checks_conditions`: its methods ask
    whether the conditions of the caller's role assignments hold.
    """

    name: str
    extension: ClassVar[bool] = False
    listed_by_access: ClassVar[bool] = False
    checks_conditions: ClassVar[bool] = False

    async def get(self, call: Call) -> Response:
        """GET (and HEAD) of one resource."""
        raise self._not_emulated("GET")

    async def list(self, call: Call) -> Response:
        """GET of a collection."""
        raise self._not_emulated("list")

    async def put(self, call: Call) -> Response:
        """PUT of one resource."""
        raise self._not_emulated("PUT")

    async def patch(self, call: Call) -> Response:
        """PATCH of one resource."""
        raise self._not_emulated("PATCH")

    async def delete(self, call: Call) -> Response:
        """DELETE of one resource."""
        raise self._not_emulated("DELETE")

    async def action(self, call: Call) -> Response:
        """POST of `call.path.verb`."""
        raise self._not_emulated(f"POST {call.path.verb}")

    def _not_emulated(self, operation: str) -> Exception:
        return errors.not_emulated(f"{operation} of {self.name}")


class StoredType(ResourceType):
    """A type whose GET and list answer the stored documents: enough for everything that the seed creates."""

    async def get(self, call: Call) -> Response:
        return JSONResponse(self.present(call, self.existing(call)))

    async def list(self, call: Call) -> Response:
        scope = call.path.parent_id or call.path.scope or "/"
        return collection(self.present(call, each) for each in call.resources.below(scope, self.name))

    def existing(self, call: Call) -> Document:
        """The resource the request is about; raises 404 `ResourceNotFound`."""
        resource = call.current
        if resource is None:
            raise errors.resource_not_found(call.path, self.name)
        return resource

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        """The resource as it is answered."""
        return public(resource)

    def envelope(self, call: Call, *, tracked: bool) -> Document:
        """`id`, `name`, `type` of what a PUT writes; of a tracked type also `location` and `tags`.

        Raises:
            ServiceError: an unknown member, no location, or another location than the existing resource has.
        """
        if unknown := sorted(set(call.body) - _ENVELOPE):
            raise errors.invalid_content(f"Could not find member '{unknown[0]}' on object of type 'ResourceDefinition'")
        resource = {"id": self.canonical_id(call.path), "name": call.path.name, "type": self.name}
        if not tracked:
            return resource
        location = str(call.body.get("location") or "")
        if not location:
            raise errors.location_required()
        current = call.current
        if current is not None and _plain(current["location"]) != _plain(location):
            raise errors.location_differs(call.path, current["location"], location)
        return {**resource, "location": _plain(location), "tags": call.body.get("tags") or {}}

    def canonical_id(self, path: ArmPath) -> str:
        """The id as the provider prints it: its own letter case for all but the names."""
        namespace, *types = self.name.split("/")
        nested = "".join(f"/{each}/{name}" for each, name in zip(types, path.names, strict=True))
        return f"{path.group_id}/providers/{namespace}{nested}"


class SeededType(StoredType):
    """A type that no stack writes: it holds only what the seed created."""

    def __init__(self, name: str) -> None:
        self.name = name


def collection(resources: Iterable[Mapping[str, Any]]) -> JSONResponse:
    """The answer to a list request, all on one page."""
    return JSONResponse({"value": list(resources)})


def _plain(location: str) -> str:
    """`East US` and `eastus` are one location; ARM stores the second."""
    return location.replace(" ", "").lower()
