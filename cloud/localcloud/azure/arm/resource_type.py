"""The interface of a resource type of the local ARM: one class per type, one method per HTTP method.

The application has authenticated and authorised the caller and found the resource group and the parent before a method
runs. A method that a type does not have returns `NotEmulated`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from starlette.datastructures import URL
from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.path import ArmPath
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources, public
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.azure.shared.understood import Members, Understood, members_of
from localcloud.azure.tenant.tokens import Caller
from localcloud.core import yaml_text
from localcloud.core.clouds import Cloud
from localcloud.core.store import Document

# Members that ARM itself reads in any resource; others are refused before a provider sees them.
_ENVELOPE = frozenset(
    {"id", "name", "type", "location", "tags", "properties", "identity", "sku", "kind", "plan", "zones", "etag"}
    | {"managedBy", "extendedLocation", "systemData"}
)
ANSWERED: Members = dict.fromkeys(("id", "name", "type", "etag", "systemData"))
"""What an answer has beside what was sent: a client may send back what it has read."""


@dataclass(frozen=True)
class Call:
    """One authorised request.

    Attributes:
        resources: the store of ARM documents.
        path: the parsed request path.
        body: the JSON body, {} when there is none; of a PUT without null members, which count as absent.
        query: the query parameters by their names in lower case.
        url: the whole URL.
        asked: the cloud whose names the client uses.
        type_names: every resource type that is emulated.
    """

    cloud: LocalAzure
    resources: Resources
    path: ArmPath
    caller: Caller
    body: dict[str, Any]
    query: Mapping[str, str]
    url: URL
    asked: Cloud
    type_names: Sequence[str]

    @property
    def current(self) -> Document | None:
        """The stored resource before this request, None if there is none."""
        return self.resources.get(self.path.id)

    @property
    def properties(self) -> dict[str, Any]:
        """`properties` of the body."""
        return self.body.get("properties") or {}

    def require_linked(self, type_name: str, action: str, linked: Iterable[str]) -> None:
        """Refuse a write that refers to a resource on which the caller may not do `action`; raises 403."""
        self.cloud.authorization.require_linked(
            self.caller.object_id, f"{type_name}/write", self.path.id, action, linked
        )


class ResourceType:
    """A resource type; `name` in Azure's own letter case. `extension`: it may have any other scope.

    `listed_by_access`: every caller may list it, and sees what it has access to. `checks_conditions`: its methods ask
    whether the conditions of the caller's role assignments hold. `read_by_anybody_at_the_root`: at the scope `/`
    every signed-in caller may read it. `read_with_any_role`: so
    may whoever has a role anywhere in the subscription.
    """

    name: str
    extension: ClassVar[bool] = False
    listed_by_access: ClassVar[bool] = False
    checks_conditions: ClassVar[bool] = False
    read_by_anybody_at_the_root: ClassVar[bool] = False
    read_with_any_role: ClassVar[bool] = False

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

    def reads_of(self, operation: str) -> Understood | None:
        """What an operation reads; None for one that the type does not have."""
        method = {"POST": "action"}.get(operation.partition(" ")[0], operation.lower())
        if getattr(type(self), method) is getattr(ResourceType, method):
            return None
        return _reads().get((self.name, operation), None if method == "action" else Understood())

    def _not_emulated(self, operation: str) -> Exception:
        return errors.not_emulated(f"{operation} of {self.name}")


@cache
def _reads() -> Mapping[tuple[str, str], Understood]:
    """What is in `reads.yaml`, by type and operation."""
    table = yaml_text.load(Path(__file__).with_name("reads.yaml").read_bytes())
    return {
        (name, operation): Understood.of(asked) if isinstance(asked, str) else Understood.of(body=members_of(asked))
        for names, operations in table.items()
        for name in names.split()
        for operation, asked in operations.items()
    }


class StoredType(ResourceType):
    """A type whose GET and list return the stored documents: enough for everything that the seed creates."""

    async def get(self, call: Call) -> Response:
        return JSONResponse(self.present(call, self.existing(call)))

    async def list(self, call: Call) -> Response:
        scope = call.path.parent_id or call.path.scope or "/"
        return collection(self.present(call, resource) for resource in call.resources.below(scope, self.name))

    def existing(self, call: Call) -> Document:
        """The resource the request is about; raises `not_found`."""
        resource = call.current
        if resource is None:
            raise self.not_found(call)
        return resource

    def not_found(self, call: Call) -> ServiceError:
        """The type's own 404."""
        return errors.resource_not_found(call.path, self.name)

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        """The resource as the response has it."""
        return public(resource)

    def envelope(self, call: Call, *, tracked: bool) -> Document:
        """`id`, `name`, `type` of what a PUT writes; of a tracked type also `location` and `tags`.

        Raises:
            ServiceError: no resource group; no location, or another location than the existing resource has.
        """
        if call.path.group_id is None:
            raise errors.not_emulated(f"{self.name} outside of a resource group")
        resource = {"id": self.canonical_id(call.path), "name": call.path.name, "type": self.name}
        if not tracked:
            return resource
        location = str(call.body.get("location") or "")
        if not location:
            raise refusal("LocationRequired")
        current = call.current
        if current is not None and plain_location(current["location"]) != plain_location(location):
            words = {"name": call.path.name, "group": call.path.resource_group, "location": current["location"]}
            raise refusal("InvalidResourceLocation", **words, asked=location)
        return {**resource, "location": plain_location(location), "tags": call.body.get("tags") or {}}

    def canonical_id(self, path: ArmPath) -> str:
        """The id as the provider prints it: its own letter case for all but the names."""
        namespace, *types = self.name.split("/")
        nested = "".join(f"/{type_name}/{name}" for type_name, name in zip(types, path.names, strict=True))
        return f"{path.group_id}/providers/{namespace}{nested}"


class WrittenType(StoredType):
    """A type that stacks write and delete."""

    def written(self, call: Call, resource: Document) -> Response:
        """Write the resource of a PUT; the answer is 201 for a new one."""
        status = 200 if call.current else 201
        call.resources.put(resource)
        return JSONResponse(self.present(call, resource), status_code=status)

    async def delete(self, call: Call) -> Response:
        resource = call.current
        if resource is None:
            return Response(status_code=204)
        with call.cloud.store.transaction():
            self.before_deletion(call, resource)
            call.resources.delete(call.path.id)
        return Response(status_code=200)

    def before_deletion(self, call: Call, resource: Document) -> None:
        """Refuse the deletion of a resource that is in use, or delete what goes with it."""


class SeededType(StoredType):
    """A type that no stack writes: it has only what the seed, or the write of another type, has created."""

    def __init__(self, name: str) -> None:
        self.name = name


def collection(resources: Iterable[Mapping[str, Any]]) -> JSONResponse:
    """The answer to a list request, all on one page."""
    return JSONResponse({"value": list(resources)})


def page(call: Call, resources: Iterable[Mapping[str, Any]]) -> JSONResponse:
    """The answer to a list request, as many as `$top` asks for, with the link to those after them; raises 400."""
    entries, asked, begin = list(resources), call.query.get("$top", ""), call.query.get("$skiptoken", "0")
    for name, text, least in (("$top", asked or "1", 1), ("$skiptoken", begin, 0)):
        if not text.isdecimal() or int(text) < least:
            raise errors.bad_request(f"The value '{text}' of the query parameter '{name}' is not valid.")
    end = int(begin) + int(asked) if asked else len(entries)
    link = {"nextLink": str(call.url.include_query_params(**{"$skiptoken": str(end)}))} if end < len(entries) else {}
    return JSONResponse({"value": entries[int(begin) : end], **link})


def unknown_member(resource_type: ResourceType, operation: str, path: Sequence[str]) -> Exception:
    """The refusal of a member of a body: ARM's own if ARM does not know it either."""
    if len(path) == 1 and path[0] not in _ENVELOPE:
        return errors.invalid_content(f"Could not find member '{path[0]}' on object of type 'ResourceDefinition'")
    return errors.not_emulated(f"the member {'.'.join(path)} of {operation} {resource_type.name}")


def enumerated(value: object, choices: Iterable[str]) -> str | None:
    """The choice that a value means, which ARM compares without case; None for none of them."""
    return next((choice for choice in choices if isinstance(value, str) and choice.lower() == value.lower()), None)


def plain_location(location: str) -> str:
    """`East US` and `eastus` are one location; ARM stores the second."""
    return location.replace(" ", "").lower()
