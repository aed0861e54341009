"""Graph's routes: applications and service principals (same shape, one class), the deleted items, users' groups.

Each read of applications or service principals meets a replica, which may be behind in their certificates
(`Faults.graph_delays`, `HeldFaults.lags`). A PATCH replaces the list, and may be based on an old one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.graph import federated_credentials, odata, permissions, representation
from localcloud.azure.graph.collection import Collection, Entry
from localcloud.azure.graph.deleted_items import DeletedItems
from localcloud.azure.graph.odata import LISTED, READ, route
from localcloud.azure.graph.principals import DirectoryObjects, Users
from localcloud.azure.graph.throttle import GraphThrottle
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import ServiceError, json_object, service_app
from localcloud.azure.shared.understood import Understood
from localcloud.azure.tenant.objects import Application, ServicePrincipal
from localcloud.azure.tenant.tokens import Caller
from localcloud.core import clock


def app(cloud: LocalAzure) -> Starlette:
    """Graph's application."""
    guard = permissions.GraphGuard(cloud.tokens, GraphThrottle(cloud.faults.graph_requests))
    parts = (
        _Applications(cloud, guard),
        _ServicePrincipals(cloud, guard),
        DeletedItems(cloud, guard),
        DirectoryObjects(cloud, guard),
        Users(cloud, guard),
    )
    routes = [route for part in parts for route in part.routes()]
    service = service_app("graph", routes, faults=cloud.faults, holder=cloud.holder, render=_render)
    service.add_middleware(odata.BetaAsWell)
    return service


class _Applications(Collection):
    name = "applications"
    kind = Application

    keys = ("/{id}", "(appId='{app_id}')", "(uniqueName='{unique_name}')")

    def routes(self) -> Sequence[BaseRoute]:
        routes = [*super().routes()]
        changed = Understood.of(headers="prefer", body=federated_credentials.MEMBERS)
        for member in (f"/v1.0/applications{key}" for key in self.keys):
            federated = f"{member}/federatedIdentityCredentials"
            routes += [
                route("GET", federated, self.federated, LISTED),
                route("POST", federated, self.add_federated, Understood.of(body=federated_credentials.MEMBERS)),
            ]
            for credential in (f"{federated}/{{credential}}", f"{federated}(name='{{credential}}')"):
                routes += [
                    route("GET", credential, self.one_federated, READ),
                    route("PATCH", credential, self.change_federated, changed),
                    route("DELETE", credential, self.remove_federated),
                ]
        return routes

    def addressed(self, request: Request) -> Entry:
        """The application that the path names, by its unique name as well; raises 404."""
        if "unique_name" not in request.path_params:
            return super().addressed(request)
        name = request.path_params["unique_name"]
        entry = self._named(name)
        if entry is None:
            raise representation.not_found(name)
        return entry

    def _named(self, unique_name: str) -> Entry | None:
        return next((entry for entry in self.entries() if entry.properties.get("uniqueName") == unique_name), None)

    def entries(self) -> Sequence[Entry]:
        return self.directory.applications()

    def by_object_id(self, object_id: str) -> Entry | None:
        return self.directory.application(object_id)

    def by_app_id(self, app_id: str) -> Entry | None:
        return self.directory.application_by_app(app_id)

    def make(self, caller: Caller, body: dict[str, Any]) -> Entry:
        permissions.require_create(caller)
        if not body.get("displayName"):
            message = "A value is required for property 'displayName' of resource 'Application'."
            raise ServiceError(400, "Request_BadRequest", message)
        return self.directory.create_application(
            str(body["displayName"]),
            permissions.initial_owners(caller, representation.owners(body)),
            representation.writable(body, Application),
        )

    def delete(self, object_id: str) -> bool:
        return self.directory.delete_application(object_id)

    async def federated(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        entry = self.addressed(request)
        assert isinstance(entry, Application)
        return JSONResponse(odata.collection(request, "federatedIdentityCredentials", map(dict, entry.federated)))

    async def one_federated(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        entry, name = self.addressed(request), request.path_params["credential"]
        assert isinstance(entry, Application)
        credential = federated_credentials.find(entry, name)
        if credential is None:
            raise representation.not_found(name)
        return JSONResponse(odata.entity(request, "federatedIdentityCredentials", dict(credential)))

    async def add_federated(self, request: Request) -> Response:
        entry = self._owned_application(request)
        credential = federated_credentials.created(await json_object(request), entry)
        return self._federated_created(request, entry, credential)

    async def change_federated(self, request: Request) -> Response:
        """PATCH by id or name; with `Prefer: create-if-missing` it creates the credential of that name."""
        entry, name = self._owned_application(request), request.path_params["credential"]
        body, existing = await json_object(request), federated_credentials.find(entry, name)
        is_upsert = odata.prefers_creation(request)
        if existing is None and not is_upsert:
            raise representation.not_found(name)
        if existing is None:
            return self._federated_created(request, entry, federated_credentials.created({**body, "name": name}, entry))
        changed = federated_credentials.changed(existing, body, entry)
        kept = tuple(changed if credential is existing else credential for credential in entry.federated)
        self.directory.update(replace(entry, federated=kept))
        return Response(status_code=204)

    async def remove_federated(self, request: Request) -> Response:
        entry, name = self._owned_application(request), request.path_params["credential"]
        gone = federated_credentials.find(entry, name)
        if gone is None:
            raise representation.not_found(name)
        self.directory.update(
            replace(entry, federated=tuple(credential for credential in entry.federated if credential is not gone))
        )
        return Response(status_code=204)

    def _federated_created(self, request: Request, entry: Application, credential: dict[str, Any]) -> Response:
        self.directory.update(replace(entry, federated=(*entry.federated, credential)))
        return JSONResponse(odata.entity(request, "federatedIdentityCredentials", credential), status_code=201)

    def _owned_application(self, request: Request) -> Application:
        entry = self.owned(request)
        assert isinstance(entry, Application)
        return entry

    async def change(self, request: Request) -> Response:
        """PATCH; by unique name and with `Prefer: create-if-missing` it creates an application that is missing."""
        name = request.path_params.get("unique_name")
        if name is None:
            return await super().change(request)
        caller, body, entry = self.caller(request), await json_object(request), self._named(name)
        is_upsert = odata.prefers_creation(request)
        if entry is not None:
            self.apply(caller, entry, body)
            return Response(status_code=204)
        if not is_upsert:
            raise representation.not_found(name)
        return self.created(request, caller, {**body, "uniqueName": name})


class _ServicePrincipals(Collection):
    name = "servicePrincipals"
    kind = ServicePrincipal

    def entries(self) -> Sequence[Entry]:
        return self.directory.service_principals()

    def by_object_id(self, object_id: str) -> Entry | None:
        return self.directory.service_principal(object_id)

    def by_app_id(self, app_id: str) -> Entry | None:
        return self.directory.service_principal_by_app(app_id)

    def make(self, caller: Caller, body: dict[str, Any]) -> Entry:
        app_id = str(body.get("appId", ""))
        permissions.require_create_principal(caller, self.directory.application_by_app(app_id))
        return self.directory.create_service_principal(
            app_id,
            permissions.initial_owners(caller, representation.owners(body)),
            representation.writable(body, ServicePrincipal),
        )

    def delete(self, object_id: str) -> bool:
        return self.directory.delete_service_principal(object_id)


def _render(error: ServiceError) -> Response:
    inner = {"date": clock.now().strftime("%Y-%m-%dT%H:%M:%S"), "request-id": str(uuid.uuid4())}
    body = {"error": {"code": error.code, "message": error.message, "innerError": inner}}
    return JSONResponse(body, status_code=error.status, headers=error.headers)
