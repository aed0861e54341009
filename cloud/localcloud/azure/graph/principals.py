"""Graph's routes to principals of any kind, and to users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.graph import odata, permissions, representation
from localcloud.azure.graph.odata import route
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import ServiceError, json_object
from localcloud.azure.shared.understood import Understood

# Graph v1.0 reference, directoryObject: getByIds.
_MOST_IDS: Final = 1000


class DirectoryObjects:
    """Objects of any kind by their ids, with which clients find the names of principals."""

    def __init__(self, cloud: LocalAzure, guard: permissions.GraphGuard) -> None:
        self._directory = cloud.directory
        self._people = cloud.people
        self._guard = guard
        self._tenant_id = cloud.tenant_id

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        return [route("POST", "/v1.0/directoryObjects/getByIds", self.by_ids, Understood.of(body="ids types"))]

    async def by_ids(self, request: Request) -> Response:
        """The objects with these ids, of these types."""
        permissions.require_read(self._guard.authenticate(request))
        body = await json_object(request)
        wanted, kinds = (
            body.get("ids"),
            body.get("types") or [_kind(name) for name in (*representation.TYPES.values(), representation.USER)],
        )
        if not isinstance(wanted, list) or len(wanted) > _MOST_IDS:
            raise ServiceError(400, "Request_BadRequest", f"Too many or no 'ids': at most {_MOST_IDS} are accepted.")
        entries = (self._find(str(object_id).lower()) for object_id in wanted)
        items = [entry for entry in entries if entry is not None and _kind(entry["@odata.type"]) in kinds]
        return JSONResponse(odata.collection(request, "directoryObjects", items))

    def _find(self, object_id: str) -> dict[str, Any] | None:
        entry = self._directory.service_principal(object_id) or self._directory.application(object_id)
        if entry is not None:
            return representation.typed_json(entry, self._tenant_id)
        user = self._people.user(object_id)
        return None if user is None else representation.user_json(user)


class Users:
    """The signed-in user, and the groups that a user is in."""

    def __init__(self, cloud: LocalAzure, guard: permissions.GraphGuard) -> None:
        self._people = cloud.people
        self._guard = guard

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        return [
            route("GET", "/v1.0/me", self.me, Understood.of("$select")),
            # Every group of the local tenant is a security group.
            route(
                "POST",
                "/v1.0/users/{user}/getMemberGroups",
                self.member_groups,
                Understood.of(body="securityEnabledOnly"),
            ),
        ]

    async def me(self, request: Request) -> Response:
        """The user who signed in."""
        caller = self._guard.authenticate(request)
        user = self._people.user(caller.object_id)
        if user is None:
            message = "/me request is only valid with delegated authentication flow."
            raise ServiceError(400, "BadRequest", message)
        return JSONResponse(odata.entity(request, "users", representation.user_json(user)))

    async def member_groups(self, request: Request) -> Response:
        """The ids of a user's groups."""
        permissions.require_memberships(self._guard.authenticate(request))
        name = request.path_params["user"]
        user = self._people.user(name.lower()) or self._people.user_by_name(name)
        if user is None:
            raise representation.not_found(name)
        return JSONResponse(odata.strings(request, self._people.groups_of(user.object_id)))


def _kind(odata_type: str) -> str:
    """`servicePrincipal` of `#microsoft.graph.servicePrincipal`."""
    return odata_type.rpartition(".")[2]
