"""The objects: create, read, change and delete with Kubernetes' rules, over the local cloud's store.

Keys are `<group>/<plural>/<namespace>/<name>` (group `core` for the core group); the values of a Secret are sealed.
Every change gets the next resource version and is published to the watches. Callers are on one event loop and nothing
here awaits, so each call is atomic.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from localcloud.core import clock
from localcloud.core.store import Store
from localcloud.kubernetes import patches, schemas
from localcloud.kubernetes.errors import Cause, already_exists, bad_request, conflict, expired, invalid, not_found
from localcloud.kubernetes.kinds import KINDS, NAMESPACE, ResourceKind
from localcloud.kubernetes.options import WriteOptions

# What the API server puts into a new status; it is written through the subresource only.
_STATUS: Final[dict[str, dict[str, Any]]] = {
    "Namespace": {"phase": "Active"},
    "Pod": {"phase": "Pending"},
    "Deployment": {},
    "ReplicaSet": {"replicas": 0},
    "PersistentVolumeClaim": {"phase": "Pending"},
}


def fill_in(document: dict[str, Any]) -> None:
    """Set the absent fields that depend on others, in place; `defaults.yaml` has the rest."""
    match document["kind"]:
        case "Namespace":
            document["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = document["metadata"]["name"]
            document.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
        case "Pod":
            _pod_spec(document["spec"])
        case "Deployment" | "ReplicaSet":
            _pod_spec(document["spec"]["template"]["spec"])
            strategy = document["spec"].get("strategy", {})
            if strategy.get("type") == "RollingUpdate":
                given = strategy.get("rollingUpdate", {})
                strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **given}
        case "RoleBinding":
            for subject in document.get("subjects", []):
                if subject["kind"] in {"User", "Group"}:
                    subject.setdefault("apiGroup", "rbac.authorization.k8s.io")
    if (status := _STATUS.get(document["kind"])) is not None:
        document["status"] = {**status, **document.get("status", {})}


def _pod_spec(spec: dict[str, Any]) -> None:
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        image = container.get("image", "")
        is_latest = image.endswith(":latest") or ":" not in image.rsplit("/", 1)[-1]
        container.setdefault("imagePullPolicy", "Always" if is_latest else "IfNotPresent")


# Watch events and their subscribers.


# How many past events a watch may start behind; a client that is further behind lists again (410 Expired).
_HISTORY: Final = 4096


@dataclass(frozen=True)
class WatchEvent:
    """One event. `before` is the object before a modification: a watch with a selector needs both sides."""

    version: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: ResourceKind
    document: dict[str, Any]
    before: dict[str, Any] | None = None


class Broker:
    """Delivers every change to every open watch. Used on one event loop, in the process that serves the API."""

    def __init__(self, version: int) -> None:
        self._oldest = version
        self._history: deque[WatchEvent] = deque(maxlen=_HISTORY)
        self._queues: set[asyncio.Queue[WatchEvent]] = set()

    def publish(self, change: WatchEvent) -> None:
        """Record a change and wake the watches."""
        if len(self._history) == _HISTORY:
            self._oldest = self._history[0].version
        self._history.append(change)
        for queue in self._queues:
            queue.put_nowait(change)

    async def watch(
        self, kind: ResourceKind, since: int, wanted: Callable[[dict[str, Any]], bool], timeout: float | None
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """`(type, object)` of every change after version `since` to objects of the kind that are `wanted`.

        Ends after `timeout` seconds. Raises a 410 `StatusError` if the history does not reach back to `since`.
        """
        if since < self._oldest:
            raise expired("too old resource version: list again and watch from there")
        ends = None if timeout is None else asyncio.get_running_loop().time() + timeout
        queue: asyncio.Queue[WatchEvent] = asyncio.Queue()
        for change in self._history:
            if change.version > since:
                queue.put_nowait(change)
        self._queues.add(queue)
        try:
            with suppress(TimeoutError):
                while True:
                    # Around the `get` alone: around the loop it would cancel the consumer of this generator, too.
                    left = None if ends is None else ends - asyncio.get_running_loop().time()
                    async with asyncio.timeout(left):
                        change = await queue.get()
                    if change.kind is kind and (type_ := _type_for(change, wanted)):
                        yield type_, change.document
        finally:
            self._queues.discard(queue)


def _type_for(change: WatchEvent, wanted: Callable[[dict[str, Any]], bool]) -> str | None:
    """An object that comes into a selector is ADDED to its watch, one that leaves it is DELETED from it."""
    is_wanted = wanted(change.document)
    if change.type != "MODIFIED" or change.before is None:
        return change.type if is_wanted else None
    was_wanted = wanted(change.before)
    if is_wanted:
        return "MODIFIED" if was_wanted else "ADDED"
    return "DELETED" if was_wanted else None


Object = dict[str, Any]

_STORED: Final = "kubernetes"
_VERSION: Final = ("kubernetes-version", "resourceVersion")
_INITIAL_NAMESPACES: Final = ("default", "kube-system")
# Metadata that only the server sets; a client's values are ignored.
_SERVER_METADATA: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")
_NO_OPTIONS: Final = WriteOptions()


@dataclass(frozen=True)
class WriteResult:
    """An object after a write, and warnings for the client (unknown fields that were dropped)."""

    document: Object
    warnings: tuple[str, ...] = ()
    is_new: bool = False


class Objects:
    """All objects of the API; creates the namespaces of every cluster."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.broker = Broker(self.version)
        for name in _INITIAL_NAMESPACES:
            if store.get(_STORED, _key(NAMESPACE, None, name)) is None:
                self.create(NAMESPACE, None, {"metadata": {"name": name}})

    @property
    def version(self) -> int:
        """The resource version of the newest change."""
        return int((self._store.get(*_VERSION) or {"version": 0})["version"])

    def get(self, kind: ResourceKind, namespace: str | None, name: str) -> Object:
        """The object; raises a 404 `StatusError`."""
        document = self._store.get(_STORED, _key(kind, namespace, name))
        if document is None:
            raise not_found(kind, name)
        return self._unsealed(kind, document)

    def list(self, kind: ResourceKind, namespace: str | None, wanted: Callable[[Object], bool]) -> list[Object]:
        """The objects of one namespace, or of all."""
        prefix = _key(kind, namespace, "")
        objects = (self._unsealed(kind, document) for _, document in self._store.items(_STORED, prefix))
        return [document for document in objects if wanted(document)]

    def create(
        self,
        kind: ResourceKind,
        namespace: str | None,
        body: Object,
        options: WriteOptions = _NO_OPTIONS,
        *,
        managed: Object | None = None,
    ) -> WriteResult:
        """Create; `managed` is the manager's entry; raises 404 for a missing namespace, 409 AlreadyExists, 422."""
        metadata = dict(body.get("metadata") or {})
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                raise invalid(kind, "", [Cause("metadata.name", "Required value: name or generateName is required")])
            metadata["name"] = f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"
        name = metadata["name"]
        if namespace is not None:
            if self._store.get(_STORED, _key(NAMESPACE, None, namespace)) is None:
                raise not_found(NAMESPACE, namespace)
            if metadata.setdefault("namespace", namespace) != namespace:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
        document, warnings = _checked(kind, {**body, "metadata": metadata}, strict=options.strict)
        if self._store.get(_STORED, _key(kind, namespace, name)) is not None:
            raise already_exists(kind, name)
        for field in (*_SERVER_METADATA, "managedFields"):
            document["metadata"].pop(field, None)
        if managed is not None:
            document["metadata"]["managedFields"] = [managed]
        document["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": clock.rfc3339(clock.now())}
        if kind.has_generation or kind.custom:
            document["metadata"]["generation"] = 1
        # A namespace's phase is a default; the others' status is written through the subresource only.
        if kind.has_status and kind is not NAMESPACE:
            document.pop("status", None)
        _complete(kind, document, old=None)
        if not options.dry_run:
            self._expire(kind, namespace)
            self._write(kind, document, before=None)
        return WriteResult(document, warnings, is_new=True)

    def replace(
        self,
        kind: ResourceKind,
        old: Object,
        body: Object,
        options: WriteOptions = _NO_OPTIONS,
        *,
        status: bool = False,
    ) -> WriteResult:
        """Replace `old` by `body`, or only its status; raises 409 Conflict for a stale version, 422."""
        name = old["metadata"]["name"]
        metadata = dict(body.get("metadata") or {})
        if metadata.setdefault("name", name) != name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        version = metadata.get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(kind, name)
        document, warnings = _checked(kind, {**body, "metadata": metadata}, strict=options.strict)
        if status:
            document = {**old, "metadata": dict(old["metadata"]), "status": document.get("status", {})}
        elif kind.has_status:
            document.pop("status", None)
            if "status" in old:
                document["status"] = old["status"]
        for field in (*_SERVER_METADATA, "namespace"):
            document["metadata"].pop(field, None)
            if field in old["metadata"]:
                document["metadata"][field] = old["metadata"][field]
        # Clients may write it, to give up fields; a client that does not send it keeps it.
        if "managedFields" not in document["metadata"] and "managedFields" in old["metadata"]:
            document["metadata"]["managedFields"] = old["metadata"]["managedFields"]
        _complete(kind, document, old=old)
        if "generation" in old["metadata"] and _desired(document) != _desired(old):
            document["metadata"]["generation"] = old["metadata"]["generation"] + 1
        if document != old and not options.dry_run:
            self._write(kind, document, before=old)
        return WriteResult(document, warnings)

    def apply(
        self, kind: ResourceKind, namespace: str | None, name: str, body: Object, options: WriteOptions, manager: str
    ) -> WriteResult:
        """Create or change the object by server-side apply; raises as `create` and `replace`."""
        if "managedFields" in (body.get("metadata") or {}):
            raise bad_request("metadata.managedFields must be nil")
        if self._store.get(_STORED, _key(kind, namespace, name)) is None:
            return self.create(kind, namespace, body, options, managed=patches.managed_fields(body, manager, "Apply"))
        old = self.get(kind, namespace, name)
        return self.replace(kind, old, patches.apply(old, body, manager), options)

    def delete(
        self, kind: ResourceKind, namespace: str | None, name: str, *, orphan: bool = False, dry_run: bool = False
    ) -> Object:
        """Delete an object, its dependents (unless `orphan`), and a namespace's content; returns the object."""
        document = self.get(kind, namespace, name)
        if dry_run:
            return document
        with self._store.transaction():
            self._store.delete(_STORED, _key(kind, namespace, name))
            self.broker.publish(WatchEvent(self._next_version(document), "DELETED", kind, document))
            if kind is NAMESPACE:
                for inner in (kind for kind in KINDS if kind.namespaced):
                    for item in self.list(inner, name, lambda _: True):
                        self.delete(inner, name, item["metadata"]["name"])
            elif not orphan:
                self._delete_owned(document)
        return document

    def _delete_owned(self, owner: Object) -> None:
        uid, namespace = owner["metadata"]["uid"], owner["metadata"].get("namespace")
        for kind in (kind for kind in KINDS if kind.namespaced):
            for item in self.list(kind, namespace, lambda item: _is_owned_by(item, uid)):
                others = [reference for reference in item["metadata"]["ownerReferences"] if reference["uid"] != uid]
                if others:
                    # The garbage collector deletes with the last owner, and drops the reference to one that is gone.
                    left = {**item, "metadata": {**item["metadata"], "ownerReferences": others}}
                    self.replace(kind, item, left)
                # An earlier deletion of this loop may have included it.
                elif self._store.get(_STORED, _key(kind, namespace, item["metadata"]["name"])) is not None:
                    self.delete(kind, namespace, item["metadata"]["name"])

    def _expire(self, kind: ResourceKind, namespace: str | None) -> None:
        if kind.lifetime is None:
            return
        oldest = clock.rfc3339(clock.now() - kind.lifetime)
        for item in self.list(kind, namespace, lambda item: item["metadata"]["creationTimestamp"] < oldest):
            self.delete(kind, namespace, item["metadata"]["name"])

    def _write(self, kind: ResourceKind, document: Object, *, before: Object | None) -> None:
        with self._store.transaction():
            version = self._next_version(document)
            metadata = document["metadata"]
            self._store.put(
                _STORED,
                _key(kind, metadata.get("namespace"), metadata["name"]),
                _with_secret_values(kind, document, self._store.seal),
            )
        self.broker.publish(WatchEvent(version, "ADDED" if before is None else "MODIFIED", kind, document, before))

    def _next_version(self, document: Object) -> int:
        version = self.version + 1
        self._store.put(*_VERSION, {"version": version})
        document["metadata"]["resourceVersion"] = str(version)
        return version

    def _unsealed(self, kind: ResourceKind, document: Object) -> Object:
        return _with_secret_values(kind, document, self._store.unseal)


def _key(kind: ResourceKind, namespace: str | None, name: str) -> str:
    place = f"{kind.group or 'core'}/{kind.plural}/"
    if kind.namespaced and namespace is None:
        return place
    return f"{place}{namespace or ''}/{name}"


def _with_secret_values(kind: ResourceKind, document: Object, change: Callable[[str], str]) -> Object:
    if (kind.group, kind.kind) != ("", "Secret") or "data" not in document:
        return document
    return {**document, "data": {key: change(value) for key, value in document["data"].items()}}


def _checked(kind: ResourceKind, body: Object, *, strict: bool) -> tuple[Object, tuple[str, ...]]:
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if body.get(field, expected) != expected:
            raise bad_request(
                f"the {field} in the data ({body[field]}) does not match the expected {field} ({expected})"
            )
    document, findings = schemas.check(kind, {**body, "apiVersion": kind.api_version, "kind": kind.kind})
    warnings = tuple(f'unknown field "{path}"' for path in findings.unknown)
    if strict and warnings:
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(warnings)}"
        )
    if findings.causes:
        raise invalid(kind, document["metadata"].get("name", ""), findings.causes)
    return document, warnings


def _complete(kind: ResourceKind, document: Object, *, old: Object | None) -> None:
    if kind.kind == "Secret":
        schemas.merge_string_data(document)
    fill_in(document)
    if causes := schemas.problems(kind, document, old):
        raise invalid(kind, document["metadata"]["name"], causes)


def _desired(document: Object) -> Object:
    return {key: value for key, value in document.items() if key not in {"metadata", "status"}}


def _is_owned_by(document: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in document["metadata"].get("ownerReferences", []))
