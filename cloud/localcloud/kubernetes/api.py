"""The HTTP interface: paths, bearer token, content types, selectors, watches."""

from __future__ import annotations

import hmac
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from localcloud.azure.tenant.tokens import InvalidTokenError, Tokens
from localcloud.core import clock, yaml_text
from localcloud.core.clouds import AKS_SERVER_APP_ID
from localcloud.core.documents import document
from localcloud.core.store import Store, StoreError
from localcloud.kubernetes import discovery, patches
from localcloud.kubernetes.errors import (
    StatusError,
    bad_request,
    method_not_allowed,
    no_such_resource,
    not_emulated,
    unauthorized,
    unsupported_media_type,
)
from localcloud.kubernetes.kinds import BY_PLURAL, NAMESPACE, ResourceKind
from localcloud.kubernetes.objects import Object, Objects, WriteResult
from localcloud.kubernetes.options import (
    DeleteOptions,
    ListOptions,
    WriteOptions,
    check_get,
    check_patch,
    field_selector,
    label_selector,
)
from localcloud.kubernetes.pod_output import EXEC, SUBRESOURCES, PodOutput

# The tables `kubectl get` prints: columns by kind, computed on the server as kube-apiserver does.

_Cell = Callable[[dict[str, Any]], Any]


def _table(kind: ResourceKind, documents: Sequence[Object], request: Request) -> dict[str, Any] | None:
    """A `Table` of the objects if the client asks for one, else None; each has the part that `includeObject` names.

    Raises a 400 `StatusError` if that is not None, Metadata or Object.
    """
    accept, included = request.headers.get("accept", ""), request.query_params.get("includeObject") or "Metadata"
    if "as=Table" not in accept or "v=v1;" not in accept.replace(" ", "") + ";":
        return None
    columns = {"Name": lambda item: item["metadata"]["name"], **_COLUMNS.get(kind.kind, {}), "Age": _age}
    rows = [{"cells": [cell(item) for cell in columns.values()], **_included(item, included)} for item in documents]
    headings = [document(__file__, "column", name=name, format="name" if name == "Name" else "") for name in columns]
    return document(__file__, "table", columns=headings, rows=rows)


def _included(document: dict[str, Any], included: str) -> dict[str, Any]:
    match included:
        case "None":
            return {}
        case "Metadata":
            metadata = document["metadata"]
            return {"object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}}
        case "Object":
            return {"object": document}
    raise bad_request(f'includeObject: unsupported value "{included}": supported values: None, Metadata, Object')


def _age(document: dict[str, Any]) -> str:
    seconds = int((clock.now() - clock.parse_rfc3339(document["metadata"]["creationTimestamp"])).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _ready_containers(pod: dict[str, Any]) -> str:
    statuses = pod["status"].get("containerStatuses", [])
    return f"{sum(status['ready'] for status in statuses)}/{len(pod['spec']['containers'])}"


def _pod_status(pod: dict[str, Any]) -> str:
    for status in pod["status"].get("containerStatuses", []):
        if reason := status.get("state", {}).get("waiting", {}).get("reason"):
            return str(reason)
    return str(pod["status"].get("phase", ""))


def _involved(event: dict[str, Any]) -> str:
    involved = event["involvedObject"]
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


_COLUMNS: Final[dict[str, dict[str, _Cell]]] = {
    "Namespace": {"Status": lambda item: item["status"]["phase"]},
    "Secret": {"Type": lambda item: item["type"], "Data": lambda item: str(len(item.get("data", {})))},
    "ConfigMap": {"Data": lambda item: str(len(item.get("data", {})))},
    "Pod": {
        "Ready": _ready_containers,
        "Status": _pod_status,
        "Restarts": lambda pod: str(sum(one["restartCount"] for one in pod["status"].get("containerStatuses", []))),
    },
    "Deployment": {
        "Ready": lambda item: f"{item['status'].get('readyReplicas', 0)}/{item['spec']['replicas']}",
        "Up-to-date": lambda item: str(item["status"].get("updatedReplicas", 0)),
        "Available": lambda item: str(item["status"].get("availableReplicas", 0)),
    },
    "ReplicaSet": {
        "Desired": lambda item: str(item["spec"]["replicas"]),
        "Current": lambda item: str(item["status"].get("replicas", 0)),
        "Ready": lambda item: str(item["status"].get("readyReplicas", 0)),
    },
    "Event": {
        "Type": lambda item: item.get("type", ""),
        "Reason": lambda item: item.get("reason", ""),
        "Object": _involved,
        "Message": lambda item: item.get("message", ""),
    },
}


_OPEN_PATHS: Final = ("/version", "/healthz", "/livez", "/readyz")
_STATUS: Final = "status"
_BINDING: Final = "binding"
_IMPERSONATE: Final = b"impersonate-"
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def app(store: Store, token: str, state: Path, entra: Tokens | None = None) -> Starlette:
    """The API over `store`; requests except health and version need a bearer: `token`, or one of Entra ID for AKS.

    `state` is the state directory, with the logs of the pods.

    A bearer allows everything, because there is no RBAC; access reviews say so.
    """
    api = _Api(Objects(store), PodOutput(state))
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    return Starlette(
        routes=[
            *(Route(path, _answer_ok) for path in _OPEN_PATHS[1:]),
            Route("/version", _document(lambda _: discovery.VERSION)),
            Route("/api", _document(lambda _: discovery.core_versions())),
            Route("/apis", _document(lambda _: discovery.groups())),
            Route("/apis/{group}", _document(lambda path: discovery.group(path["group"]))),
            Route("/openapi/v2", _openapi_v2),
            Route("/openapi/v3", _document(lambda _: discovery.openapi_paths())),
            Route("/openapi/v3/{path:path}", _document(lambda path: discovery.openapi(path["path"]))),
            Route("/api/{version}", _document(lambda path: discovery.resources("", path["version"]))),
            Route(
                "/apis/{group}/{version}", _document(lambda path: discovery.resources(path["group"], path["version"]))
            ),
            Route(_ACCESS_REVIEWS, _allow, methods=["POST"]),
            WebSocketRoute("/api/{version}/{rest:path}", api.execute),
            Route("/api/{version}/{rest:path}", api.answer, methods=methods),
            Route("/apis/{group}/{version}/{rest:path}", api.answer, methods=methods),
        ],
        middleware=[Middleware(_Authentication, token=token, entra=entra)],
        exception_handlers=dict.fromkeys((StatusError, HTTPException, StoreError), _refused),
    )


@dataclass(frozen=True)
class _Target:
    """What a path names: a kind, or one object of it, or its status."""

    kind: ResourceKind
    namespace: str | None
    name: str | None
    subresource: str | None


class _Api:
    def __init__(self, objects: Objects, output: PodOutput) -> None:
        self._objects = objects
        self._output = output

    async def answer(self, request: Request) -> Response:
        target = _target(request.path_params)
        query = request.query_params
        if target.subresource == _BINDING:
            return await self._bind(target, request)
        if target.subresource in SUBRESOURCES:
            pod = self._objects.get(target.kind, target.namespace, str(target.name))
            return self._output.answer(pod, str(target.subresource), query)
        match request.method, target.name:
            case "GET", None:
                options = ListOptions.of(query, self._objects.version)
                return (self._watch if options.is_watch else self._list)(target, options, request)
            case "GET", str(name):
                check_get(query, self._objects.version)
                document = self._objects.get(target.kind, target.namespace, name)
                return JSONResponse(_table(target.kind, [document], request) or document)
            case "POST", None:
                return await self._create(target, request)
            case "PUT", str(name):
                written = WriteOptions.of(query, "UpdateOptions")
                old = self._objects.get(target.kind, target.namespace, name)
                body = await _body(request)
                return self._replaced(target, old, body, written)
            case "PATCH", str(name):
                return await self._patch(target, name, request)
            case "DELETE", str(name):
                return await self._delete(target, name, request)
        raise method_not_allowed(request.method)

    async def execute(self, websocket: WebSocket) -> None:
        """A command in a container."""

        def found() -> Object:
            target = _target(websocket.path_params)
            if target.subresource != EXEC:
                raise not_emulated("a WebSocket for anything but exec")
            return self._objects.get(target.kind, target.namespace, str(target.name))

        await self._output.execute(websocket, found, websocket.query_params)

    async def _bind(self, target: _Target, request: Request) -> Response:
        """Assign a pod to a node, once."""
        if request.method != "POST":
            raise method_not_allowed(request.method)
        body, name = await _body(request), str(target.name)
        pod = self._objects.get(target.kind, target.namespace, name)
        node = (body.get("target") or {}).get("name")
        uid = (body.get("metadata") or {}).get("uid")
        if not node:
            raise StatusError(422, "Invalid", f'Binding "{name}" is invalid: target.name: Required value')
        if uid not in (None, pod["metadata"]["uid"]):
            raise StatusError(409, "Conflict", f'Precondition failed: UID in precondition: {uid} of pod "{name}"')
        if assigned := pod["spec"].get("nodeName"):
            message = f'Operation cannot be fulfilled on pods/binding "{name}": pod {name} is already assigned to node'
            raise StatusError(409, "Conflict", f'{message} "{assigned}"')
        bound = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        options = WriteOptions.of(request.query_params, "CreateOptions")
        self._objects.replace(target.kind, pod, bound, options)
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return JSONResponse(done, status_code=201)

    async def _create(self, target: _Target, request: Request) -> Response:
        options = WriteOptions.of(request.query_params, "CreateOptions")
        body = await _body(request)
        manager = request.query_params.get("fieldManager") or request.headers.get("user-agent", "").partition("/")[0]
        entry = patches.managed_fields(body, manager, "Update")
        return _written(self._objects.create(target.kind, target.namespace, body, options, managed=entry), options)

    async def _patch(self, target: _Target, name: str, request: Request) -> Response:
        content_type = request.headers.get("content-type", "").split(";")[0].strip()
        accepted = [patches.MERGE, patches.JSON, patches.APPLY, *(() if target.kind.custom else (patches.STRATEGIC,))]
        if content_type not in accepted:
            raise unsupported_media_type(content_type, accepted)
        patch = await _body(request, any_json=True)
        options = WriteOptions.of(request.query_params, "PatchOptions")
        check_patch(request.query_params, is_apply=content_type == patches.APPLY)
        if content_type == patches.APPLY and target.subresource is None:
            if not isinstance(patch, dict):
                raise bad_request("the object provided is unrecognized: an object is expected")
            manager = request.query_params["fieldManager"]
            return _written(self._objects.apply(target.kind, target.namespace, name, patch, options, manager), options)
        old = self._objects.get(target.kind, target.namespace, name)
        match content_type:
            case patches.JSON:
                new = patches.apply_json_patch(old, patch)
            case patches.STRATEGIC:
                new = patches.strategic_merge(old, patch)
            case _:
                new = patches.merge(old, patch)
        if not isinstance(new, dict):
            raise bad_request("the patch leaves no object")
        return self._replaced(target, old, new, options)

    def _replaced(self, target: _Target, old: Object, new: Object, options: WriteOptions) -> Response:
        status = target.subresource == _STATUS
        return _written(self._objects.replace(target.kind, old, new, options, status=status), options)

    async def _delete(self, target: _Target, name: str, request: Request) -> Response:
        options = DeleteOptions.of(request.query_params, await _body(request))
        if conditions := options.preconditions:
            metadata = self._objects.get(target.kind, target.namespace, name)["metadata"]
            if any(metadata.get(field) != value for field, value in conditions.items()):
                raise StatusError(409, "Conflict", f'Precondition failed: {conditions} does not hold for "{name}"')
        document = self._objects.delete(
            target.kind, target.namespace, name, orphan=options.orphan, dry_run=options.dry_run
        )
        if target.kind.kind == "Pod":
            return JSONResponse(document)
        details = {"name": name, "kind": target.kind.plural, "uid": document["metadata"]["uid"]}
        if target.kind.group:
            details["group"] = target.kind.group
        return JSONResponse(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )

    def _list(self, target: _Target, options: ListOptions, request: Request) -> Response:
        kind = target.kind
        everything = self._objects.list(kind, target.namespace, _wanted(target, options))
        items, metadata = options.page(everything, self._objects.version)
        table = _table(kind, items, request)
        if table is not None:
            return JSONResponse({**table, "metadata": metadata})
        return JSONResponse(
            {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}
        )

    def _watch(self, target: _Target, options: ListOptions, request: Request) -> Response:
        wanted = _wanted(target, options)
        present: list[Object] = []
        since = options.version
        if since is None:
            present, since = self._objects.list(target.kind, target.namespace, wanted), self._objects.version
        changes = self._objects.broker.watch(target.kind, since, wanted, options.timeout)

        def line(type_: str, document: dict[str, Any]) -> str:
            table = _table(target.kind, [document], request)
            return json.dumps({"type": type_, "object": table or document}, separators=(",", ":")) + "\n"

        async def lines() -> AsyncIterator[str]:
            for found in present:
                yield line("ADDED", found)
            try:
                async for type_, document in changes:
                    yield line(type_, document)
            except StatusError as error:
                yield json.dumps({"type": "ERROR", "object": error.status()}) + "\n"

        return StreamingResponse(lines(), media_type="application/json")


class _Authentication:
    """401 for every request without a token, but for health and version; impersonation is refused."""

    def __init__(self, app: ASGIApp, *, token: str, entra: Tokens | None) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._entra = entra

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in _OPEN_PATHS:
            header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(header, self._expected) and not self._is_of_entra(header):
                await unauthorized().answer()(scope, receive, send)
                return
            if any(name.startswith(_IMPERSONATE) for name, _ in scope["headers"]):
                await not_emulated("impersonation").answer()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_of_entra(self, header: bytes) -> bool:
        if self._entra is None:
            return False
        try:
            self._entra.verify(header.decode(errors="replace").removeprefix("Bearer "), [AKS_SERVER_APP_ID])
        except InvalidTokenError:
            return False
        return True


async def _allow(request: Request) -> Response:
    review = await _body(request)
    return JSONResponse({**review, "status": {"allowed": True}}, status_code=201)


def _target(path: dict[str, str]) -> _Target:
    steps = path["rest"].strip("/").split("/")
    namespace: str | None = None
    # namespaces/<name>/<plural>/... is in a namespace; namespaces/<name> and namespaces/<name>/status are one.
    if steps[0] == NAMESPACE.plural and len(steps) > 2 and steps[2] != _STATUS:
        namespace, steps = steps[1], steps[2:]
    kind = BY_PLURAL.get((path.get("group", ""), path["version"], steps[0]))
    if kind is None or len(steps) > 3 or (namespace is not None and not kind.namespaced):
        raise no_such_resource()
    name = steps[1] if len(steps) > 1 else None
    if kind.namespaced and namespace is None and name is not None:
        raise no_such_resource()
    subresource = steps[2] if len(steps) > 2 else None
    is_of_pods = subresource in (_BINDING, *SUBRESOURCES) and kind.kind == "Pod"
    if subresource is not None and not is_of_pods and not (subresource == _STATUS and kind.has_status):
        raise no_such_resource()
    return _Target(kind, namespace, name, subresource)


def _wanted(target: _Target, options: ListOptions) -> Callable[[Object], bool]:
    labels, fields = label_selector(options.labels), field_selector(target.kind, options.fields)
    namespace = target.namespace

    def wanted(document: Object) -> bool:
        is_there = namespace is None or document["metadata"].get("namespace") == namespace
        return is_there and labels(document) and fields(document)

    return wanted


async def _body(request: Request, *, any_json: bool = False) -> Any:
    raw = await request.body()
    if not raw.strip():
        return {}
    content_type = request.headers.get("content-type", "")
    if "protobuf" in content_type:  # kubectl's typed `create` commands; `apply` and `create -f` send JSON
        raise unsupported_media_type(content_type, ["application/json", "application/yaml"])
    is_yaml = "yaml" in content_type
    try:
        parsed = yaml_text.load_as_go(raw) if is_yaml else json.loads(raw)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from None
    if not any_json and not isinstance(parsed, dict):
        raise bad_request("the object provided is unrecognized: an object is expected")
    return parsed


def _written(written: WriteResult, options: WriteOptions) -> Response:
    response = JSONResponse(written.document, status_code=201 if written.is_new else 200)
    for warning in written.warnings if options.warns else ():
        response.headers.append("Warning", f"299 - {json.dumps(warning)}")
    return response


def _document(make: Callable[[dict[str, str]], dict[str, Any] | None]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        document = make(request.path_params)
        if document is None:
            raise no_such_resource()
        return JSONResponse(document)

    return answer


async def _openapi_v2(request: Request) -> Response:
    """As protobuf for clients that accept it: client-go reads nothing else."""
    accept = request.headers.get("accept", "")
    if any(media_type in accept for media_type in discovery.PROTOBUF_ASKED):
        return Response(discovery.as_protobuf(), media_type=discovery.PROTOBUF)
    return JSONResponse(discovery.openapi_document())


async def _answer_ok(_: Request) -> Response:
    return Response("ok", media_type="text/plain")


async def _refused(request: Request, error: Exception) -> Response:
    match error:
        case StatusError():
            return error.answer()
        case StoreError():
            message = f"the local Kubernetes API failed: {error}"
            return StatusError(error.status, error.code, message).answer()
        case HTTPException(status_code=405):
            return method_not_allowed(request.method).answer()
    return no_such_resource().answer()
