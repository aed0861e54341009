"""Graph's routes: applications and service principals (same shape, one class), the deleted items, users' groups.

Each read of applications or service principals meets a replica, which may be behind in their certificates
(`Faults.graph_delays`, `HeldFaults.lags`). A PATCH replaces the list, and it may have been made of an old one.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from localcloud.azure.graph import odata, permissions, representation
from localcloud.azure.graph.principals import DirectoryObjects, Users
from localcloud.azure.graph.throttle import GraphThrottle
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import ServiceError, json_object, service_app
from localcloud.azure.tenant.objects import Application, PasswordCredential, ServicePrincipal
from localcloud.azure.tenant.replicas import Replicas
from localcloud.azure.tenant.tokens import Caller
from localcloud.core import clock

Entry = Application | ServicePrincipal


def app(cloud: LocalAzure) -> Starlette:
    """Graph's application."""
    door = permissions.Door(cloud.tokens, GraphThrottle(cloud.faults.graph_requests))
    parts = (
        _Applications(cloud, door),
        _ServicePrincipals(cloud, door),
        _DeletedItems(cloud, door),
        DirectoryObjects(cloud, door),
        Users(cloud, door),
    )
    routes = [route for part in parts for route in part.routes()]
    service = service_app("graph", routes, faults=cloud.faults, holder=cloud.holder, render=_render)
    service.add_middleware(odata.BetaAsWell)
    return service


class _Collection(ABC):
    """A collection of directory objects and its members, addressed by object id or by application id."""

    name: str
    kind: type[Entry]

    def __init__(self, cloud: LocalAzure, door: permissions.Door) -> None:
        self.directory = cloud.directory
        self._door = door
        self._tenant_id = cloud.tenant_id
        self._holder = cloud.holder
        self._replicas = Replicas(lambda: cloud.faults.graph_delays, cloud.faults.random())

    def routes(self) -> Sequence[BaseRoute]:
        collection = f"/v1.0/{self.name}"
        members = (f"{collection}/{{id}}", f"{collection}(appId='{{app_id}}')")
        return [
            Route(collection, self.list, methods=["GET"]),
            Route(collection, self.create, methods=["POST"]),
            *(Route(member, self.read, methods=["GET"]) for member in members),
            *(Route(member, self.change, methods=["PATCH"]) for member in members),
            *(Route(member, self.remove, methods=["DELETE"]) for member in members),
            *(Route(f"{member}/owners", self.owners, methods=["GET"]) for member in members),
            *(Route(f"{member}/owners/$ref", self.add_owner, methods=["POST"]) for member in members),
            *(Route(f"{member}/owners/{{owner}}/$ref", self.drop_owner, methods=["DELETE"]) for member in members),
            *(Route(f"{member}/addPassword", self.add_password, methods=["POST"]) for member in members),
            *(Route(f"{member}/removePassword", self.remove_password, methods=["POST"]) for member in members),
        ]

    @abstractmethod
    def entries(self) -> Sequence[Entry]:
        """All members."""

    @abstractmethod
    def by_object_id(self, object_id: str) -> Entry | None: ...

    @abstractmethod
    def by_app_id(self, app_id: str) -> Entry | None: ...

    @abstractmethod
    def make(self, caller: Caller, body: dict[str, Any]) -> Entry:
        """Create a member from a POST body, without its certificates."""

    @abstractmethod
    def delete(self, object_id: str) -> bool: ...

    async def list(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        known = await self._known(request)
        items = (representation.to_json(entry.seen_until(known), self._tenant_id) for entry in self.entries())
        return JSONResponse(odata.collection(request, self.name, items))

    async def create(self, request: Request) -> Response:
        caller = self.caller(request)
        return self.created(request, caller, await json_object(request))

    def created(self, request: Request, caller: Caller, body: dict[str, Any]) -> Response:
        keys = representation.key_credentials(body.get("keyCredentials", []), ())
        entry = self.make(caller, body)
        if keys:
            self.directory.set_key_credentials(entry.object_id, keys)
        made = representation.to_json(self.present(entry.object_id), self._tenant_id)
        return JSONResponse(odata.entity(request, self.name, made), status_code=201)

    async def read(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        entry = self.addressed(request).seen_until(await self._known(request))
        item = representation.to_json(entry, self._tenant_id, with_keys="keyCredentials" in odata.selected(request))
        return JSONResponse(odata.entity(request, self.name, item))

    async def _known(self, request: Request) -> datetime:
        """Up to when the replica that answers a read has seen everything."""
        for each in self._holder.now().lags:
            if (await each.is_about("graph", request.scope, request.receive))[0] and self._holder.strikes(each):
                return each.since
        return self._replicas.choose().knows_until

    async def change(self, request: Request) -> Response:
        caller = self.caller(request)
        body = await json_object(request)
        self.apply(caller, self.addressed(request), body)
        return Response(status_code=204)

    def apply(self, caller: Caller, entry: Entry, body: dict[str, Any]) -> None:
        """Apply a PATCH body to a member."""
        permissions.require_write(caller, entry)
        # The object's own id may stand in the body: some clients send what they have read.
        if str(body.pop("id", entry.object_id)) != entry.object_id:
            raise ServiceError(400, "Request_BadRequest", "Property 'id' is read-only and cannot be set.")
        properties = representation.writable(body, self.kind)
        keys = None
        if "keyCredentials" in body:
            keys = representation.key_credentials(body["keyCredentials"], entry.key_credentials)
        display_name = str(body.get("displayName", entry.display_name))
        self.directory.update(replace(entry, display_name=display_name, properties={**entry.properties, **properties}))
        if keys is not None:
            self.directory.set_key_credentials(entry.object_id, keys)

    async def remove(self, request: Request) -> Response:
        self.delete(self.owned(request).object_id)
        return Response(status_code=204)

    async def owners(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        found = map(self.directory.service_principal, self.addressed(request).owners)
        items = (
            {"@odata.type": representation.TYPES[ServicePrincipal], **representation.to_json(each, self._tenant_id)}
            for each in found
            if each
        )
        return JSONResponse(odata.collection(request, "directoryObjects", items))

    async def add_owner(self, request: Request) -> Response:
        caller = self.caller(request)
        reference = (await json_object(request)).get("@odata.id", "")
        owner = str(reference).rpartition("/")[2]
        entry = self.addressed(request)
        permissions.require_write(caller, entry)
        if self.directory.service_principal(owner) is None:
            raise representation.not_found(owner)
        if owner in entry.owners:
            raise ServiceError(
                400,
                "Request_BadRequest",
                "One or more added object references already exist for the following modified properties: 'owners'.",
            )
        self.directory.update(replace(entry, owners=(*entry.owners, owner)))
        return Response(status_code=204)

    async def drop_owner(self, request: Request) -> Response:
        entry, owner = self.owned(request), request.path_params["owner"]
        if owner not in entry.owners:
            raise representation.not_found(owner)
        self.directory.update(replace(entry, owners=tuple(each for each in entry.owners if each != owner)))
        return Response(status_code=204)

    async def add_password(self, request: Request) -> Response:
        """Create a client secret; only this answer contains its value."""
        entry = self.owned(request)
        wanted = (await json_object(request)).get("passwordCredential") or {}
        end = representation.password_end(wanted)
        password, value = PasswordCredential.issue(wanted.get("displayName"), end)
        self.directory.update(replace(entry, passwords=(*entry.passwords, password)))
        answer = {**representation.password_json(password), "secretText": value}
        return JSONResponse(odata.entity(request, "microsoft.graph.passwordCredential", answer))

    async def remove_password(self, request: Request) -> Response:
        entry = self.owned(request)
        gone = str((await json_object(request)).get("keyId"))
        kept = tuple(each for each in entry.passwords if each.key_id != gone)
        if len(kept) == len(entry.passwords):
            raise ServiceError(400, "Request_BadRequest", f"No password credential found with keyId '{gone}'.")
        self.directory.update(replace(entry, passwords=kept))
        return Response(status_code=204)

    def caller(self, request: Request) -> Caller:
        return self._door.enter(request)

    def addressed(self, request: Request) -> Entry:
        """The member that the path names; raises 404."""
        if "id" in request.path_params:
            return self.present(request.path_params["id"])
        app_id = request.path_params["app_id"]
        entry = self.by_app_id(app_id)
        if entry is None:
            raise representation.not_found(app_id)
        return entry

    def owned(self, request: Request) -> Entry:
        """The member that the path names; raises 404, and 403 unless the caller may change it."""
        caller, entry = self.caller(request), self.addressed(request)
        permissions.require_write(caller, entry)
        return entry

    def present(self, object_id: str) -> Entry:
        """The member with this object id; raises 404."""
        entry = self.by_object_id(object_id)
        if entry is None:
            raise representation.not_found(object_id)
        return entry


class _Applications(_Collection):
    name = "applications"
    kind = Application

    def routes(self) -> Sequence[BaseRoute]:
        upsert = Route("/v1.0/applications(uniqueName='{unique_name}')", self.upsert, methods=["PATCH"])
        routes: list[BaseRoute] = [upsert, *super().routes()]
        for member in ("/v1.0/applications/{id}", "/v1.0/applications(appId='{app_id}')"):
            federated = f"{member}/federatedIdentityCredentials"
            routes += [
                Route(federated, self.federated, methods=["GET"]),
                Route(federated, self.add_federated, methods=["POST"]),
                Route(f"{federated}/{{credential}}", self.remove_federated, methods=["DELETE"]),
            ]
        return routes

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

    async def add_federated(self, request: Request) -> Response:
        entry = self._owned_application(request)
        made = representation.federated(await json_object(request))
        self.directory.update(replace(entry, federated=(*entry.federated, made)))
        return JSONResponse(odata.entity(request, "federatedIdentityCredentials", made), status_code=201)

    async def remove_federated(self, request: Request) -> Response:
        entry, gone = self._owned_application(request), request.path_params["credential"]
        kept = tuple(each for each in entry.federated if gone not in (each["id"], each["name"]))
        if len(kept) == len(entry.federated):
            raise representation.not_found(gone)
        self.directory.update(replace(entry, federated=kept))
        return Response(status_code=204)

    def _owned_application(self, request: Request) -> Application:
        entry = self.owned(request)
        assert isinstance(entry, Application)
        return entry

    async def upsert(self, request: Request) -> Response:
        """PATCH by unique name: creates the application when it is missing and `Prefer: create-if-missing` is sent."""
        caller = self.caller(request)
        name = request.path_params["unique_name"]
        body = await json_object(request)
        entry = next((each for each in self.entries() if each.properties.get("uniqueName") == name), None)
        if entry is not None:
            self.apply(caller, entry, body)
            return Response(status_code=204)
        if "create-if-missing" not in request.headers.get("prefer", ""):
            raise representation.not_found(name)
        return self.created(request, caller, {**body, "uniqueName": name})


class _ServicePrincipals(_Collection):
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


class _DeletedItems:
    """`directory/deletedItems`: what can be restored or purged."""

    def __init__(self, cloud: LocalAzure, door: permissions.Door) -> None:
        self._directory = cloud.directory
        self._door = door
        self._tenant_id = cloud.tenant_id

    def routes(self) -> Sequence[BaseRoute]:
        item = "/v1.0/directory/deletedItems/{id}"
        return [
            Route("/v1.0/directory/deletedItems/microsoft.graph.{type}", self.list, methods=["GET"]),
            Route(item, self.read, methods=["GET"]),
            Route(item, self.purge, methods=["DELETE"]),
            Route(f"{item}/restore", self.restore, methods=["POST"]),
        ]

    async def list(self, request: Request) -> Response:
        permissions.require_read(self._door.enter(request))
        wanted = f"#microsoft.graph.{request.path_params['type']}"
        items = (
            self._json(each.entry)
            for each in self._directory.deleted()
            if representation.TYPES[type(each.entry)] == wanted
        )
        return JSONResponse(odata.collection(request, "directoryObjects", items))

    async def read(self, request: Request) -> Response:
        permissions.require_read(self._door.enter(request))
        return JSONResponse(odata.entity(request, "directoryObjects", self._json(self._addressed(request))))

    async def purge(self, request: Request) -> Response:
        entry = self._writable(request)
        self._directory.purge(entry.object_id)
        return Response(status_code=204)

    async def restore(self, request: Request) -> Response:
        entry = self._writable(request)
        self._directory.restore(entry.object_id)
        return JSONResponse(odata.entity(request, "directoryObjects", self._json(entry)))

    def _writable(self, request: Request) -> Entry:
        caller = self._door.enter(request)
        entry = self._addressed(request)
        permissions.require_write(caller, entry)
        return entry

    def _addressed(self, request: Request) -> Entry:
        wanted = request.path_params["id"]
        entry = next((each.entry for each in self._directory.deleted() if each.entry.object_id == wanted), None)
        if entry is None:
            raise representation.not_found(wanted)
        return entry

    def _json(self, entry: Entry) -> dict[str, Any]:
        return {"@odata.type": representation.TYPES[type(entry)], **representation.to_json(entry, self._tenant_id)}


def _render(error: ServiceError) -> Response:
    inner = {"date": clock.now().strftime("%Y-%m-%dT%H:%M:%S"), "request-id": str(uuid.uuid4())}
    body = {"error": {"code": error.code, "message": error.message, "innerError": inner}}
    return JSONResponse(body, status_code=error.status, headers=error.headers)
