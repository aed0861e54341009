"""Graph's routes: applications and service principals (same shape, one class), the deleted items, users' groups.

Each read of applications or service principals meets a replica, which may be behind in their certificates
(`Faults.graph_delays`, `HeldFaults.lags`). A PATCH replaces the list, and may be based on an old one.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.graph import odata, permissions, representation
from localcloud.azure.graph.collection import POLICY, Collection, Entry
from localcloud.azure.graph.odata import LISTED, READ, route
from localcloud.azure.graph.permissions import GraphThrottle
from localcloud.azure.graph.representation import without_annotations
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import json_object, service_app
from localcloud.azure.shared.refusals import ServiceError, not_emulated, refusal
from localcloud.azure.shared.understood import Understood
from localcloud.azure.tenant.objects import Application, ServicePrincipal
from localcloud.azure.tenant.tokens import Caller
from localcloud.core import clock


class _Part:
    def __init__(self, cloud: LocalAzure, guard: permissions.GraphGuard) -> None:
        self._directory, self._people, self._holder = cloud.directory, cloud.people, cloud.holder
        self._tenant_id = cloud.tenant_id
        self._guard = guard


# Graph's routes to deleted items.


class DeletedItems(_Part):
    """`directory/deletedItems`, which can be restored or purged."""

    def routes(self) -> Sequence[BaseRoute]:
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
        for deleted in self._directory.deleted():
            if deleted.entry.object_id == wanted:
                return deleted.entry
        raise refusal("Request_ResourceNotFound", wanted=wanted)


# The federated credentials of an application, as Graph reads and checks them.
#
# Rules: Graph v1.0 reference of federatedIdentityCredential (names, one audience, at most 20), "Upsert
# federatedIdentityCredential"; messages in azure-workload-identity issue 434 (issuer and subject) and azure-dev issue
# 1482 (name).

_FEDERATED_MEMBERS: Final = dict.fromkeys(
    ("id", "name", "issuer", "subject", "audiences", "description", "claimsMatchingExpression")
)
"""The members of a body."""
_MEMBERS: Final = ("name", "issuer", "subject", "audiences")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~-]{0,119}")
_LONGEST: Final = 600  # of issuer, subject and audience
_MOST: Final = 20


def _find_federated(entry: Application, key: str) -> Mapping[str, Any] | None:
    """The credential with this id, in any letter case, or this name."""
    return next(
        (credential for credential in entry.federated if credential["id"] == key.lower() or credential["name"] == key),
        None,
    )


def _created_federated(body: Mapping[str, Any], entry: Application) -> dict[str, Any]:
    """The credential that a POST or an upsert asks for; raises 400 and 409."""
    credential = _checked(body, {"id": str(uuid.uuid4()), "description": None}, entry)
    if not _NAME.fullmatch(credential["name"]):
        raise _invalid(
            "Name", f"The name '{credential['name']}' must have at most 120 characters, all of them URL friendly."
        )
    if any(other["name"] == credential["name"] for other in entry.federated):
        raise refusal("Request_MultipleObjectsWithSameKeyValue federated credential", name=credential["name"])
    if len(entry.federated) >= _MOST:
        raise _invalid("", f"At most {_MOST} federated identity credentials are allowed for an application.")
    return credential


def _changed_federated(current: Mapping[str, Any], body: Mapping[str, Any], entry: Application) -> dict[str, Any]:
    """A credential after a PATCH; raises 400. Its name cannot be changed."""
    if body.get("name") not in (None, current["name"]):
        raise _invalid("Name", "The name of a federated identity credential cannot be changed.")
    return _checked(body, current, entry)


def _checked(body: Mapping[str, Any], before: Mapping[str, Any], entry: Application) -> dict[str, Any]:
    asked = without_annotations(body)
    assert isinstance(asked, dict)
    for name in asked:
        if name == "claimsMatchingExpression" and asked[name] is not None:
            raise not_emulated("graph", "claimsMatchingExpression of a federated identity credential")
    if asked.get("id") not in (None, before["id"]):
        raise refusal("Request_BadRequest another id")
    stated = {name: asked[name] for name in (*_MEMBERS, "description") if asked.get(name) is not None}
    credential = {**before, **stated}
    for name in _MEMBERS:
        if not credential.get(name):
            raise refusal("Request_BadRequest value", name=name)
    _check_values(credential)
    trusted = (credential["issuer"], credential["subject"])
    others = (other for other in entry.federated if other["id"] != credential["id"])
    if any((other["issuer"], other["subject"]) == trusted for other in others):
        raise _invalid(
            "Subject",
            "The combination of issuer and subject must be unique for the application. Issuer "
            f"{credential['issuer']} and Subject: {credential['subject']} already exist.",
        )
    return credential


def _check_values(credential: Mapping[str, Any]) -> None:
    issuer, subject, audiences = (credential[name] for name in ("issuer", "subject", "audiences"))
    parts = urlsplit(issuer) if isinstance(issuer, str) else None
    if parts is None or parts.scheme != "https" or not parts.netloc or len(issuer) > _LONGEST:
        raise _invalid("Issuer", f"The issuer must be an https URL of at most {_LONGEST} characters.")
    if not isinstance(subject, str) or len(subject) > _LONGEST:
        raise _invalid("Subject", f"The subject must have at most {_LONGEST} characters.")
    one = audiences[0] if isinstance(audiences, list) and len(audiences) == 1 else None
    if not isinstance(one, str) or len(one) > _LONGEST:
        raise _invalid("Audiences", "Exactly one audience must be given.")


def _invalid(member: str, problem: str) -> ServiceError:
    where = f" paramName: FederatedIdentityCredential.{member}," if member else ""
    return refusal("InvalidFederatedIdentityCredentialValue", problem=f"{problem}{where}")


# Graph's routes to principals of any kind, and to users.


# Graph v1.0 reference, directoryObject: getByIds.
_MOST_IDS: Final = 1000


class DirectoryObjects(_Part):
    """Objects of any kind by their ids, with which clients find the names of principals, and the tenant's policy."""

    def routes(self) -> Sequence[BaseRoute]:
        return [
            route("POST", "/v1.0/directoryObjects/getByIds", self.by_ids, Understood.of(body="ids types")),
            route("GET", "/v1.0/policies/defaultAppManagementPolicy", self.default_policy),
        ]

    async def default_policy(self, request: Request) -> Response:
        """The app management policy, which is off unless a test holds a limit."""
        permissions.require_read(self._guard.authenticate(request))
        days = self._holder.now().certificate_days
        limit = {"restrictionType": "asymmetricKeyLifetime", "state": "enabled", "maxLifetime": f"P{days}D"}
        restrictions = {"keyCredentials": [] if days is None else [limit]}
        return JSONResponse({"id": POLICY, "isEnabled": days is not None, "applicationRestrictions": restrictions})

    async def by_ids(self, request: Request) -> Response:
        permissions.require_read(self._guard.authenticate(request))
        body = await json_object(request)
        wanted, kinds = (
            body.get("ids"),
            body.get("types") or [_kind(name) for name in (*representation.TYPES.values(), representation.USER)],
        )
        if not isinstance(wanted, list) or len(wanted) > _MOST_IDS:
            raise refusal("Request_BadRequest too many ids", most=_MOST_IDS)
        entries = (self._find(str(object_id).lower()) for object_id in wanted)
        items = [entry for entry in entries if entry is not None and _kind(entry["@odata.type"]) in kinds]
        return JSONResponse(odata.collection(request, "directoryObjects", items))

    def _find(self, object_id: str) -> dict[str, Any] | None:
        entry = self._directory.application(object_id) or self._directory.service_principal(object_id)
        if entry is not None:
            return representation.typed_json(entry, self._tenant_id)
        user = self._people.user(object_id)
        return None if user is None else representation.user_json(user)


class Users(_Part):
    """The signed-in user, and the groups that a user is in."""

    def routes(self) -> Sequence[BaseRoute]:
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
        caller = self._guard.authenticate(request)
        user = self._people.user(caller.object_id)
        if user is None:
            raise refusal("BadRequest me")
        return JSONResponse(odata.entity(request, "users", representation.user_json(user)))

    async def member_groups(self, request: Request) -> Response:
        permissions.require_memberships(self._guard.authenticate(request))
        name = request.path_params["user"]
        user = self._people.user(name.lower()) or self._people.user_by_name(name)
        if user is None:
            raise refusal("Request_ResourceNotFound", wanted=name)
        return JSONResponse(odata.strings(request, self._people.groups_of(user.object_id)))


def _kind(odata_type: str) -> str:
    """`servicePrincipal` of `#microsoft.graph.servicePrincipal`."""
    return odata_type.rpartition(".")[2]


def app(cloud: LocalAzure) -> Starlette:
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


class _Applications(Collection[Application]):
    name = "applications"
    kind = Application

    keys = ("/{id}", "(appId='{app_id}')", "(uniqueName='{unique_name}')")

    def routes(self) -> Sequence[BaseRoute]:
        routes = [*super().routes()]
        changed = Understood.of(headers="prefer", body=_FEDERATED_MEMBERS)
        for member in (f"/v1.0/applications{key}" for key in self.keys):
            federated = f"{member}/federatedIdentityCredentials"
            routes += [
                route("GET", federated, self.federated, LISTED),
                route("POST", federated, self.add_federated, Understood.of(body=_FEDERATED_MEMBERS)),
            ]
            for credential in (f"{federated}/{{credential}}", f"{federated}(name='{{credential}}')"):
                routes += [
                    route("GET", credential, self.one_federated, READ),
                    route("PATCH", credential, self.change_federated, changed),
                    route("DELETE", credential, self.remove_federated),
                ]
        return routes

    def addressed(self, request: Request) -> Application:
        """The application that the path names, by its unique name as well; raises 404."""
        if "unique_name" not in request.path_params:
            return super().addressed(request)
        name = request.path_params["unique_name"]
        entry = self._named(name)
        if entry is None:
            raise refusal("Request_ResourceNotFound", wanted=name)
        return entry

    def _named(self, unique_name: str) -> Application | None:
        entries = self.directory.all(Application)
        return next((entry for entry in entries if entry.properties.get("uniqueName") == unique_name), None)

    def make(self, caller: Caller, body: dict[str, Any]) -> Application:
        permissions.require_create(caller)
        if not body.get("displayName"):
            raise refusal("Request_BadRequest no name")
        return self.directory.create_application(
            str(body["displayName"]),
            permissions.initial_owners(caller, representation.owners(body)),
            representation.writable(body, Application),
        )

    async def federated(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        entry = self.addressed(request)
        return JSONResponse(odata.collection(request, "federatedIdentityCredentials", map(dict, entry.federated)))

    async def one_federated(self, request: Request) -> Response:
        permissions.require_read(self.caller(request))
        entry, name = self.addressed(request), request.path_params["credential"]
        credential = _find_federated(entry, name)
        if credential is None:
            raise refusal("Request_ResourceNotFound", wanted=name)
        return JSONResponse(odata.entity(request, "federatedIdentityCredentials", dict(credential)))

    async def add_federated(self, request: Request) -> Response:
        entry = self.owned(request)
        credential = _created_federated(await json_object(request), entry)
        return self._federated_created(request, entry, credential)

    async def change_federated(self, request: Request) -> Response:
        """PATCH by id or name; with `Prefer: create-if-missing` it creates the credential of that name."""
        entry, name = self.owned(request), request.path_params["credential"]
        body, existing = await json_object(request), _find_federated(entry, name)
        is_upsert = odata.prefers_creation(request)
        if existing is None and not is_upsert:
            raise refusal("Request_ResourceNotFound", wanted=name)
        if existing is None:
            return self._federated_created(request, entry, _created_federated({**body, "name": name}, entry))
        changed = _changed_federated(existing, body, entry)
        kept = tuple(changed if credential is existing else credential for credential in entry.federated)
        self.directory.update(replace(entry, federated=kept))
        return Response(status_code=204)

    async def remove_federated(self, request: Request) -> Response:
        entry, name = self.owned(request), request.path_params["credential"]
        gone = _find_federated(entry, name)
        if gone is None:
            raise refusal("Request_ResourceNotFound", wanted=name)
        self.directory.update(
            replace(entry, federated=tuple(credential for credential in entry.federated if credential is not gone))
        )
        return Response(status_code=204)

    def _federated_created(self, request: Request, entry: Application, credential: dict[str, Any]) -> Response:
        self.directory.update(replace(entry, federated=(*entry.federated, credential)))
        return JSONResponse(odata.entity(request, "federatedIdentityCredentials", credential), status_code=201)

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
            raise refusal("Request_ResourceNotFound", wanted=name)
        return self.created(request, caller, {**body, "uniqueName": name})


class _ServicePrincipals(Collection[ServicePrincipal]):
    name = "servicePrincipals"
    kind = ServicePrincipal

    def make(self, caller: Caller, body: dict[str, Any]) -> ServicePrincipal:
        app_id = str(body.get("appId", ""))
        permissions.require_create_principal(caller, self.directory.application_by_app(app_id))
        return self.directory.create_service_principal(
            app_id,
            permissions.initial_owners(caller, representation.owners(body)),
            representation.writable(body, ServicePrincipal),
        )


def _render(error: ServiceError) -> Response:
    inner = {"date": clock.now().strftime("%Y-%m-%dT%H:%M:%S"), "request-id": str(uuid.uuid4())}
    body = {"error": {"code": error.code, "message": error.message, "innerError": inner}}
    return JSONResponse(body, status_code=error.status, headers=error.headers)
