"""The Kubernetes API as the kubelet uses it: plain HTTP and JSON, asynchronous."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from localcloud.core import clock
from localcloud.core.documents import document
from localcloud.kubernetes import calls
from localcloud.kubernetes.calls import ApiError, Object
from localcloud.kubernetes.kubeconfig import Connection

# A watch is opened again after this many seconds, so a dead connection is noticed (client-go: 5 to 10 minutes).
_WATCH_SECONDS: Final = 300
_TIMEOUT: Final = httpx.Timeout(30, read=_WATCH_SECONDS + 30)


@dataclass(frozen=True)
class ApiResource:
    """A collection of the API: `root` is its group and version as a URL path (`/apis/apps/v1`)."""

    root: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        return self.root.removeprefix("/apis/").removeprefix("/api/")

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection, of one object, or of its subresource."""
        return calls.path(self.root, self.plural, namespace, name, subresource)


PODS: Final = ApiResource("/api/v1", "pods", "Pod")
SECRETS: Final = ApiResource("/api/v1", "secrets", "Secret")
CONFIG_MAPS: Final = ApiResource("/api/v1", "configmaps", "ConfigMap")
SERVICE_ACCOUNTS: Final = ApiResource("/api/v1", "serviceaccounts", "ServiceAccount")
NODES: Final = ApiResource("/api/v1", "nodes", "Node")
SERVICES: Final = ApiResource("/api/v1", "services", "Service")
EVENTS: Final = ApiResource("/api/v1", "events", "Event")
DEPLOYMENTS: Final = ApiResource("/apis/apps/v1", "deployments", "Deployment")
REPLICA_SETS: Final = ApiResource("/apis/apps/v1", "replicasets", "ReplicaSet")
SECRET_PROVIDER_CLASSES: Final = ApiResource(
    "/apis/secrets-store.csi.x-k8s.io/v1", "secretproviderclasses", "SecretProviderClass"
)
POD_STATUSES: Final = ApiResource(
    "/apis/secrets-store.csi.x-k8s.io/v1", "secretproviderclasspodstatuses", "SecretProviderClassPodStatus"
)


class ApiClient:
    """Calls to one API server; failures are `ApiError`, or httpx's own without an answer."""

    def __init__(self, connection: Connection) -> None:
        self._http = httpx.AsyncClient(
            base_url=connection.server,
            headers=connection.headers,
            verify=connection.verification(),
            timeout=_TIMEOUT,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close every connection, open watches included."""
        await self._http.aclose()

    async def get(self, resource: ApiResource, namespace: str, name: str) -> Object | None:
        """The object, None for 404; raises `ApiError` for any other refusal."""
        try:
            return await self._call("GET", resource.path(namespace, name))
        except ApiError as error:
            if error.code == httpx.codes.NOT_FOUND:
                return None
            raise

    async def list(self, resource: ApiResource) -> tuple[list[Object], str]:
        """All objects of every namespace with their apiVersion and kind, and the resource version to watch from."""
        listed = await self._call("GET", resource.path(None))
        items = [{"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in listed["items"]]
        return items, listed["metadata"]["resourceVersion"]

    async def create(self, resource: ApiResource, namespace: str, document: Object) -> Object:
        """Create an object, apiVersion and kind added; returns it as stored. Raises `ApiError`, 409 if it exists."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **document}
        return await self._call("POST", resource.path(namespace), body)

    async def create_token(self, namespace: str, service_account: str, spec: Object) -> Object:
        """A token of the ServiceAccount as the TokenRequest's status has it. Raises `ApiError`."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = await self._call("POST", SERVICE_ACCOUNTS.path(namespace, service_account, "token"), body)
        status: Object = answer["status"]
        return status

    async def merge(
        self, resource: ApiResource, namespace: str, name: str, patch: Object, *, subresource: str | None = None
    ) -> Object:
        """Change an object or its `subresource` by a JSON merge patch; returns it as stored. Raises `ApiError`."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return await self._call("PATCH", resource.path(namespace, name, subresource), patch, headers)

    async def bind(self, pod: Object, node: str) -> None:
        """Assign a pod to a node, unless it is gone, replaced or assigned already. Raises `ApiError`."""
        metadata = pod["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._call("POST", PODS.path(metadata["namespace"], metadata["name"], "binding"), body)
        except ApiError as error:
            if error.code not in (httpx.codes.NOT_FOUND, httpx.codes.CONFLICT):
                raise

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str | None = None) -> None:
        """Delete an object without a grace period; nothing happens if it is gone or does not have this `uid`."""
        options: Object = {"gracePeriodSeconds": 0}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        try:
            await self._call("DELETE", resource.path(namespace, name), options)
        except ApiError as error:
            if error.code != httpx.codes.NOT_FOUND and not (uid and error.code == httpx.codes.CONFLICT):
                raise

    async def watch(self, resource: ApiResource, version: str) -> AsyncIterator[tuple[str, Object]]:
        """`(type, object)` of every change after `version`; ends after a few minutes; 410 is an `ApiError`."""
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(_WATCH_SECONDS)}
        async with self._http.stream("GET", resource.path(None), params=query) as response:
            if response.is_error:
                await response.aread()
                raise ApiError.of(response)
            async for line in response.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(status.get("code", 0), status.get("reason", ""), status.get("message", ""))
                yield event["type"], event["object"]

    async def _call(
        self, method: str, path: str, body: Object | None = None, headers: Mapping[str, str] | None = None
    ) -> Object:
        response = await self._http.request(method, path, json=body, headers=headers)
        if response.is_error:
            raise ApiError.of(response)
        answer: Object = response.json()
        return answer


_log = logging.getLogger(__name__)
# The API server's limit for an event's message.
_LONGEST: Final = 1024


class EventRecorder:
    """Writes events; a failure to write one is logged and otherwise ignored, as in every Kubernetes component."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._counts: dict[str, int] = {}
        # A kubelet counts from one; events of another kubelet keep their own names.
        self._run = secrets.token_hex(4)

    async def record(self, pod: Object, reason: str, message: str, *, type_: str = "Warning") -> None:
        """Record an event about the pod, of type Warning or Normal; `message` is cut at 1,024 characters."""
        metadata = pod["metadata"]
        message = message[:_LONGEST]
        digest = hashlib.sha256(f"{self._run} {metadata['uid']} {reason} {message}".encode()).hexdigest()[:16]
        name = f"{metadata['name']}.{digest}"
        count = self._counts[name] = self._counts.get(name, 0) + 1
        now = clock.rfc3339(clock.now())
        try:
            if count > 1:
                await self._client.merge(EVENTS, metadata["namespace"], name, {"count": count, "lastTimestamp": now})
                return
            about = {name: metadata[name] for name in ("name", "namespace", "uid")}
            words = {"event": name, "version": metadata["resourceVersion"], "node": pod["spec"]["nodeName"], **about}
            said = {"type": type_, "reason": reason, "message": message, "count": count, "now": now}
            await self._client.create(EVENTS, metadata["namespace"], document(__file__, "event", **words, **said))
        except (ApiError, httpx.HTTPError) as error:
            self._counts.pop(name, None)
            _log.info("event %s of %s/%s not recorded: %s", reason, metadata["namespace"], metadata["name"], error)
