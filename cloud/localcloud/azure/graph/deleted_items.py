"""Graph's routes to deleted items."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.graph import odata, permissions, representation
from localcloud.azure.graph.collection import Entry
from localcloud.azure.graph.odata import LISTED, route
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import not_emulated
from localcloud.azure.shared.understood import Understood


class DeletedItems:
    """`directory/deletedItems`, which can be restored or purged."""

    def __init__(self, cloud: LocalAzure, guard: permissions.GraphGuard) -> None:
        self._directory = cloud.directory
        self._guard = guard
        self._tenant_id = cloud.tenant_id

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        item = "/v1.0/directory/deletedItems/{id}"
        return [
            route("GET", "/v1.0/directory/deletedItems/microsoft.graph.{type}", self.list, LISTED),
            route("GET", item, self.read, Understood.of("$select")),
            route("DELETE", item, self.purge),
            route("POST", f"{item}/restore", self.restore),
        ]

    async def list(self, request: Request) -> Response:
        permissions.require_read(self._guard.authenticate(request))
        wanted = f"#microsoft.graph.{request.path_params['type']}"
        if wanted not in representation.TYPES.values():
            raise not_emulated("graph", f"deleted items of the type {request.path_params['type']}")
        items = (
            representation.typed_json(deleted.entry, self._tenant_id)
            for deleted in self._directory.deleted()
            if representation.TYPES[type(deleted.entry)] == wanted
        )
        return JSONResponse(odata.collection(request, "directoryObjects", items))

    async def read(self, request: Request) -> Response:
        permissions.require_read(self._guard.authenticate(request))
        item = representation.typed_json(self._addressed(request), self._tenant_id)
        return JSONResponse(odata.entity(request, "directoryObjects", item))

    async def purge(self, request: Request) -> Response:
        entry = self._writable(request)
        self._directory.purge(entry.object_id)
        return Response(status_code=204)

    async def restore(self, request: Request) -> Response:
        entry = self._writable(request)
        self._directory.restore(entry.object_id)
        item = representation.typed_json(entry, self._tenant_id)
        return JSONResponse(odata.entity(request, "directoryObjects", item))

    def _writable(self, request: Request) -> Entry:
        caller = self._guard.authenticate(request)
        entry = self._addressed(request)
        permissions.require_write(caller, entry)
        return entry

    def _addressed(self, request: Request) -> Entry:
        wanted = request.path_params["id"].lower()
        entry = next(
            (deleted.entry for deleted in self._directory.deleted() if deleted.entry.object_id == wanted), None
        )
        if entry is None:
            raise representation.not_found(wanted)
        return entry
