"""A collection of directory objects and its members: applications and service principals have the same shape."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Generic

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.graph import odata, permissions, representation
from localcloud.azure.graph.odata import LISTED, READ, route
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import json_object
from localcloud.azure.shared.refusals import not_emulated, refusal
from localcloud.azure.shared.understood import Understood
from localcloud.azure.tenant.directory import Kind, Replicas
from localcloud.azure.tenant.objects import Application, KeyCredential, PasswordCredential, ServicePrincipal
from localcloud.azure.tenant.tokens import Caller

Entry = Application | ServicePrincipal
POLICY = "00000000-0000-0000-0000-000000000000"  # the id of each tenant's default app management policy
# Functions in the place of an object's id.
_FUNCTIONS = frozenset({"delta", "getByIds", "getAvailableExtensionProperties", "validateProperties", "templates"})


class Collection(ABC, Generic[Kind]):
    """A collection of directory objects and its members, addressed by object id or by application id."""

    name: str
    kind: type[Kind]

    def __init__(self, cloud: LocalAzure, guard: permissions.GraphGuard) -> None:
        self.directory = cloud.directory
        self._guard = guard
        self._tenant_id = cloud.tenant_id
        self._holder = cloud.holder
        self._replicas = Replicas(lambda: cloud.faults.graph_delays, cloud.faults.random())

    keys: tuple[str, ...] = ("/{id}", "(appId='{app_id}')")

    def routes(self) -> Sequence[BaseRoute]:
        collection = f"/v1.0/{self.name}"
        routes = [
            route("GET", f"{collection}/$count", self.count, LISTED),
            route("GET", collection, self.list, LISTED),
            route("POST", collection, self.create, self._written("")),
        ]
        for member in (f"{collection}{key}" for key in self.keys):
            routes += [
                route("GET", member, self.read, READ),
                route("PATCH", member, self.change, self._written("prefer")),
                route("DELETE", member, self.remove),
                route("GET", f"{member}/owners", self.owners, LISTED),
                route("POST", f"{member}/owners/$ref", self.add_owner, Understood.of(body="@odata.id")),
                route("DELETE", f"{member}/owners/{{owner}}/$ref", self.drop_owner),
                route("POST", f"{member}/addPassword", self.add_password, Understood.of(body=representation.PASSWORD)),
                route("POST", f"{member}/removePassword", self.remove_password, Understood.of(body="keyId")),
            ]
        return routes

    def _written(self, headers: str) -> Understood:
        return Understood.of(headers=headers, body=representation.members(self.kind))

    @abstractmethod
    def make(self, caller: Caller, body: dict[str, Any]) -> Kind:
        """Create a member from a POST body, without its certificates."""

    async def list(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        return JSONResponse(odata.collection(request, self.name, await self._items(request), self._owners_of))

    async def count(self, request: Request) -> Response:
        """The number of members, as text."""
        permissions.require_read(self.caller(request))
        return PlainTextResponse(odata.count(request, await self._items(request)))

    async def _items(self, request: Request) -> Sequence[dict[str, Any]]:
        known, entries = await self._known(request), self.directory.all(self.kind)
        return [representation.to_json(entry.seen_until(known), self._tenant_id) for entry in entries]

    async def create(self, request: Request) -> Response:
        caller = self.caller(request)
        return self.created(request, caller, await json_object(request))

    def created(self, request: Request, caller: Caller, body: dict[str, Any]) -> Response:
        keys = self._keys(body.get("keyCredentials") or [], ())
        entry = self.make(caller, body)
        if keys:
            self.directory.set_key_credentials(entry.object_id, keys)
        document = representation.to_json(self.present(entry.object_id), self._tenant_id)
        return JSONResponse(odata.entity(request, self.name, document), status_code=201)

    async def read(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        entry = self.addressed(request).seen_until(await self._known(request))
        item = representation.to_json(entry, self._tenant_id, with_keys="keyCredentials" in odata.selected(request))
        return JSONResponse(odata.entity(request, self.name, item, self._owners_of))

    async def _known(self, request: Request) -> datetime:
        """The instant up to which the answering replica has seen every change."""
        for lag in self._holder.now().lags:
            if (await lag.is_about("graph", request.scope, request.receive))[0] and self._holder.applies(lag):
                return lag.since
        return self._replicas.choose().knows_until

    async def change(self, request: Request) -> Response:
        caller = self.caller(request)
        odata.refuse_preferences(request)
        self.apply(caller, self.addressed(request), await json_object(request))
        return Response(status_code=204)

    def apply(self, caller: Caller, entry: Entry, body: dict[str, Any]) -> None:
        permissions.require_write(caller, entry)
        # The body may have the object's own id: some clients send back what they have read.
        if str(body.pop("id", None) or entry.object_id).lower() != entry.object_id:
            raise refusal("Request_BadRequest another id")
        properties = representation.writable(body, self.kind)
        keys = None
        if body.get("keyCredentials") is not None:
            keys = self._keys(body["keyCredentials"], entry.key_credentials)
        display_name = str(body.get("displayName") or entry.display_name)
        self.directory.update(replace(entry, display_name=display_name, properties={**entry.properties, **properties}))
        if keys is not None:
            self.directory.set_key_credentials(entry.object_id, keys)

    def _keys(self, body: Any, existing: tuple[KeyCredential, ...]) -> Sequence[KeyCredential]:
        """The certificates of a body; raises 400 for a new one that lives longer than the tenant's policy allows."""
        keys, most = representation.key_credentials(body, existing), self._holder.now().certificate_days
        if most is not None and any(key.end - key.start > timedelta(days=most) for key in keys if key not in existing):
            raise refusal("CredentialInvalidLifetimeAsPerAppPolicy", policy=POLICY)
        return keys

    async def remove(self, request: Request) -> Response:
        self.directory.delete(self.owned(request))
        return Response(status_code=204)

    async def owners(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        return JSONResponse(odata.collection(request, "directoryObjects", self._owners(self.addressed(request))))

    def _owners(self, entry: Entry) -> Sequence[dict[str, Any]]:
        principals = map(self.directory.service_principal, entry.owners)
        return [representation.typed_json(entry, self._tenant_id) for entry in principals if entry]

    def _owners_of(self, object_id: str) -> Sequence[dict[str, Any]]:
        return self._owners(self.present(object_id))

    async def add_owner(self, request: Request) -> Response:
        caller = self.caller(request)
        reference = (await json_object(request)).get("@odata.id", "")
        owner = str(reference).rpartition("/")[2].lower()
        entry: Entry = self.addressed(request)
        permissions.require_write(caller, entry)
        if self.directory.service_principal(owner) is None:
            raise refusal("Request_ResourceNotFound", wanted=owner)
        if owner in entry.owners:
            raise refusal("Request_BadRequest owner twice")
        self.directory.update(replace(entry, owners=(*entry.owners, owner)))
        return Response(status_code=204)

    async def drop_owner(self, request: Request) -> Response:
        entry, owner = self.owned(request), request.path_params["owner"].lower()
        if owner not in entry.owners:
            raise refusal("Request_ResourceNotFound", wanted=owner)
        self.directory.update(replace(entry, owners=tuple(other for other in entry.owners if other != owner)))
        return Response(status_code=204)

    async def add_password(self, request: Request) -> Response:
        """Create a client secret; only this answer contains its value."""
        entry: Entry = self.owned(request)
        wanted = (await json_object(request)).get("passwordCredential") or {}
        start, end = representation.password_dates(wanted)
        password, value = PasswordCredential.issue(representation.text(wanted, "displayName"), end)
        password = replace(password, start=start)
        self.directory.update(replace(entry, passwords=(*entry.passwords, password)))
        answer = {**representation.password_json(password), "secretText": value}
        return JSONResponse(odata.entity(request, "microsoft.graph.passwordCredential", answer))

    async def remove_password(self, request: Request) -> Response:
        entry = self.owned(request)
        gone = str((await json_object(request)).get("keyId")).lower()
        kept = tuple(password for password in entry.passwords if password.key_id != gone)
        if len(kept) == len(entry.passwords):
            raise refusal("Request_BadRequest unknown secret", key=gone)
        self.directory.update(replace(entry, passwords=kept))
        return Response(status_code=204)

    def caller(self, request: Request) -> Caller:
        return self._guard.authenticate(request)

    def addressed(self, request: Request) -> Kind:
        """The member that the path names; raises 404."""
        if "id" in request.path_params:
            return self.present(request.path_params["id"])
        app_id = request.path_params["app_id"].lower()
        entry = self.directory.find_by_app(self.kind, app_id)
        if entry is None:
            raise refusal("Request_ResourceNotFound", wanted=app_id)
        return entry

    def owned(self, request: Request) -> Kind:
        """The member that the path names; raises 404, and 403 unless the caller may change it."""
        caller, entry = self.caller(request), self.addressed(request)
        permissions.require_write(caller, entry)
        return entry

    def present(self, object_id: str) -> Kind:
        """The member with this object id; raises 404, and 501 for a function in its place."""
        if object_id in _FUNCTIONS or object_id.startswith(("$", "microsoft.graph.")):
            raise not_emulated("graph", f"{object_id} of {self.name}")
        entry = self.directory.find(self.kind, object_id.lower())
        if entry is None:
            raise refusal("Request_ResourceNotFound", wanted=object_id)
        return entry
