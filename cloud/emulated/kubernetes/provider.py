"""`pulumi-resource-kubernetes`, emulated: one resource per type token, whatever kinds the API server serves."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import httpx

from emulated.kubernetes import inputs as objects
from emulated.kubernetes.client import Api, Collection, KubernetesProviderSettings, is_the_same_cluster, refusal
from emulated.kubernetes.inputs import AUTONAMED, SKIP_AWAIT, TIMEOUT
from localcloud.core import yaml_text
from localcloud.kubernetes.calls import ApiError, Object
from plugin import (
    Checked,
    CheckFailure,
    Created,
    Diff,
    InitializationError,
    PluginError,
    PluginInterruptedError,
    PropertyChange,
    Props,
    Provider,
    ReadResult,
    Resource,
    contains_unknown,
    diff_properties,
    interruptible,
    pause,
    unwrap,
)

# Which fields of which kind replace the object when they change: `replacing.yaml` has those of single kinds.

EVERY_KIND: Final = ("metadata.name", "metadata.namespace")

_FILE: Final = yaml_text.load(Path(__file__).with_name("replacing.yaml").read_bytes())
_BY_KIND: Final = {
    tuple(kind.split()): tuple(f"{path}.{name}".lstrip(".") for path, names in rows.items() for name in names.split())
    for kind, rows in _FILE.items()
}


def replacing_fields(
    document: Mapping[str, Any], *, is_secret_mutable: bool, is_config_map_mutable: bool
) -> tuple[str, ...]:
    """The fields of this object that replace it; data of Secrets and ConfigMaps only unless it may change in place."""
    kind = (document.get("apiVersion", ""), document.get("kind", ""))
    is_immutable = document.get("immutable") is True
    fields: tuple[str, ...]
    if kind == ("v1", "Secret"):
        fields = ("type",) if is_secret_mutable and not is_immutable else ("type", "stringData", "data")
    elif kind == ("v1", "ConfigMap"):
        fields = () if is_config_map_mutable and not is_immutable else ("binaryData", "data")
    else:
        fields = _BY_KIND.get(kind, ())
    return (*EVERY_KIND, *fields)


# Which changes there are, and which of them replace the object (pulumi-kubernetes `provider/pkg/provider/diff.go`).

_INDEX: Final = re.compile(r"\[\d+\]")


def difference(old: Props, new: Props, *, is_secret_mutable: bool, is_config_map_mutable: bool) -> Diff:
    """The diff between two sets of normalised inputs.

    A replacement that keeps the name deletes first, unless the name is a generated one. As the real one does, it calls
    a deletion alone one of inputs, and gives paths without the names of the properties (`addPatchValueToDiff`).
    """
    plain = unwrap(new)
    replacing = replacing_fields(
        plain, is_secret_mutable=is_secret_mutable, is_config_map_mutable=is_config_map_mutable
    )
    changes = {
        path: replace(change, replace=_replaces(path, change, replacing), input=change.kind == "delete")
        for path, change in diff_properties(old, new).items()
    }
    before, after = unwrap(old).get("metadata", {}), plain["metadata"]
    is_autonamed = (after.get("annotations") or {}).get(AUTONAMED) == "true"
    keeps_name = all(before.get(key) == after.get(key) for key in ("name", "namespace"))
    is_replaced = any(change.replace for change in changes.values())
    return Diff(changes, delete_before_replace=is_replaced and keeps_name and not is_autonamed, has_names=False)


def _replaces(path: str, change: PropertyChange, places: Iterable[str]) -> bool:
    """Whether the change is one of a replacing field, of a part of one, or adds an object that has one."""
    shapes = {path, _INDEX.sub("[*]", path)}
    return any(
        _lies_under(shape, place) or (change.kind == "add" and _lies_under(place, shape))
        for shape in shapes
        for place in places
    )


def _lies_under(path: str, place: str) -> bool:
    return path == place or path.startswith((f"{place}.", f"{place}["))


# Waiting until a Deployment is ready, and until a deleted object is gone (pulumi-kubernetes `provider/pkg/await`).

_TIMEOUT: Final = 600.0
# A watch is reopened after this many seconds, in case its connection died.
_LONGEST_WATCH: Final = 30.0


class AwaitError(Exception):
    """An object was written but is not ready in time; `live` is its last state, `reasons` explain why."""

    def __init__(self, live: Object, reasons: list[str]) -> None:
        super().__init__(f"'{live['metadata']['name']}' timed out waiting to be Ready")
        self.live = live
        self.reasons = reasons


def wait_until_ready(api: Api, collection: Collection, live: Object) -> Object:
    """The object once it is ready; only Deployments are waited for, and not those annotated to be skipped."""
    annotations = live["metadata"].get("annotations", {})
    if live["kind"] != "Deployment" or annotations.get(SKIP_AWAIT) == "true":
        return live
    deadline = time.monotonic() + float(annotations.get(TIMEOUT, _TIMEOUT))
    while not is_ready(live):
        if (left := deadline - time.monotonic()) <= 0:
            raise AwaitError(live, _reasons(api, live))
        _await_change(api, collection, live, left)
        current = api.get(collection, live["metadata"]["namespace"], live["metadata"]["name"])
        if current is None:
            raise AwaitError(live, ["the Deployment was deleted while it was waited for"])
        live = current
    return live


def wait_until_gone(api: Api, collection: Collection, live: Object) -> None:
    """Wait until the object with this uid is deleted; raises `AwaitError` if it stays."""
    metadata = live["metadata"]
    deadline = time.monotonic() + float(metadata.get("annotations", {}).get(TIMEOUT, _TIMEOUT))
    while (current := api.get(collection, metadata.get("namespace"), metadata["name"])) is not None:
        if current["metadata"]["uid"] != metadata["uid"]:
            return
        if (left := deadline - time.monotonic()) <= 0:
            raise AwaitError(current, [f"finalizers {current['metadata'].get('finalizers', [])} hold it"])
        _await_change(api, collection, current, left)


def _await_change(api: Api, collection: Collection, live: Object, left: float) -> None:
    interruptible(lambda: api.await_change(collection, live, min(left, _LONGEST_WATCH)))


def is_ready(deployment: Object) -> bool:
    """Whether the newest generation is rolled out and available."""
    status: dict[str, Any] = deployment.get("status", {})
    wanted = deployment["spec"].get("replicas", 1)
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    progressing = conditions.get("Progressing", {})
    return bool(
        status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        and status.get("updatedReplicas", 0) == status.get("replicas", 0) == wanted
        and status.get("readyReplicas", 0) >= wanted
        and progressing.get("status") == "True"
        and progressing.get("reason") == "NewReplicaSetAvailable"
        and conditions.get("Available", {}).get("status") == "True"
    )


def _reasons(api: Api, deployment: Object) -> list[str]:
    """The Deployment's own conditions, then the states and events of its pods."""
    conditions = deployment.get("status", {}).get("conditions", [])
    reasons = [
        f"[{condition['reason']}] {condition['message']}" for condition in conditions if condition["status"] != "True"
    ]
    reasons.append("Minimum number of live Pods was not attained")
    namespace = deployment["metadata"]["namespace"]
    pods, events = api.collection("v1", "Pod"), api.collection("v1", "Event")
    if pods is None or events is None:
        return reasons
    labels = deployment["spec"]["selector"].get("matchLabels", {})
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    for pod in api.list(pods, namespace, {"labelSelector": selector}):
        name = pod["metadata"]["name"]
        for status in pod.get("status", {}).get("containerStatuses", []):
            if waiting := status.get("state", {}).get("waiting"):
                reasons.append(
                    f"[Pod {name}]: {status['name']}: [{waiting['reason']}] {waiting.get('message', '')}".rstrip()
                )
        for event in api.list(events, namespace, {"fieldSelector": f"involvedObject.name={name},type=Warning"}):
            reasons.append(f"[Pod {name}]: [{event['reason']}] {event['message']}")
    return reasons


# A create is tried again while its kind or namespace is missing: five times, with these pauses in seconds.
_PAUSES: Final = (1, 2, 4, 8, 16)

_EXISTS: Final = """

The resource already exists in the cluster. This can happen when:

  - Renaming a Pulumi resource: use an alias to preserve the identity,
    or use deleteBeforeReplace if the resource needs replacement.
  - Managing an existing resource: use a Patch resource (e.g. NamespacePatch)
    to manage specific fields without owning the resource lifecycle.
  - Adopting a resource into Pulumi: use `pulumi import`. Note that
    protected resources (e.g. kube-system) cannot be deleted on destroy.
  - Intentional upsert: set upsertExistingObjects on the provider to allow
    server-side apply to update existing objects on create."""


@dataclass(frozen=True)
class ClusterSession:
    """A configured provider at work."""

    settings: KubernetesProviderSettings
    api: Api


class ObjectResource(Resource):
    """Objects of one kind. `open_session` gives None while a preview does not know the cluster.

    Ids are `<namespace>/<name>`, or the name alone for cluster-wide kinds.
    """

    def __init__(self, api_version: str, kind: str, open_session: Callable[[], ClusterSession | None]) -> None:
        self._api_version = api_version
        self._kind = kind
        self._open_session = open_session

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        inputs = {**new, "apiVersion": self._api_version, "kind": self._kind}
        inputs = objects.named(objects.normalised(inputs), old, urn)
        if (session := self._open_session()) is None:
            return Checked(inputs)
        collection = self._collection(session)
        # A custom kind that does not exist yet is assumed to be namespaced, as most are.
        is_namespaced = collection is None or collection.is_namespaced
        return Checked(objects.placed(inputs, session.settings.namespace if is_namespaced else None))

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        session = self._open_session()
        return difference(
            objects.normalised(old_inputs),
            objects.normalised(new_inputs),
            is_secret_mutable=session is not None and session.settings.is_secret_mutable,
            is_config_map_mutable=session is not None and session.settings.is_config_map_mutable,
        )

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        session = self._open_session()
        if preview and (session is None or contains_unknown(inputs) or self._collection(session) is None):
            return Created("", inputs)
        session = _configured(session)
        document = unwrap(objects.normalised(inputs))
        namespace = document["metadata"].get("namespace")
        if preview:
            collection = self._required(session)
            try:
                live = session.api.create(collection, namespace, document, dry_run=True)
            except ApiError as error:
                # The namespace or the object's replacement may come in this update, or the previewer may only read.
                if error.code in {httpx.codes.NOT_FOUND, httpx.codes.CONFLICT, httpx.codes.FORBIDDEN}:
                    return Created("", inputs)
                raise _failed("not successfully created", urn, error) from None
            return Created("", objects.previewed(live, inputs))
        collection, live = self._create(session, urn, namespace, document)
        live = self._ready(session, urn, "created", collection, live, inputs)
        return Created(_id(live), objects.state_of(live, inputs))

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        session = _configured(self._open_session())
        if (collection := self._collection(session)) is None:
            return None
        namespace, _, name = id.rpartition("/")
        try:
            live = session.api.get(collection, namespace or session.settings.namespace, name)
        except ApiError as error:
            raise PluginError(f"failed to read {self._kind} {id}: {error}") from None
        if live is None:
            return None
        return ReadResult(
            id, objects.inputs_of(live, objects.normalised(inputs) if inputs else {}), objects.state_of(live, inputs)
        )

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        session = self._open_session()
        if preview and (session is None or contains_unknown(new_inputs) or self._collection(session) is None):
            return new_inputs
        session = _configured(session)
        collection = self._required(session)
        new = unwrap(objects.normalised(new_inputs))
        patch = objects.merge_patch(unwrap(objects.normalised(old_inputs)), new)
        namespace, name = new["metadata"].get("namespace"), new["metadata"]["name"]
        try:
            live = session.api.merge(collection, namespace, name, patch, dry_run=preview)
        except ApiError as error:
            if preview and error.code == httpx.codes.FORBIDDEN:
                return new_inputs
            raise _failed("not successfully updated", urn, error) from None
        if preview:
            return objects.state_of(live, new_inputs)
        return objects.state_of(self._ready(session, urn, "updated", collection, live, new_inputs), new_inputs)

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        session = _configured(self._open_session())
        if (collection := self._collection(session)) is None:
            return
        namespace, _, name = id.rpartition("/")
        try:
            live = session.api.get(collection, namespace or None, name)
            if live is not None and session.api.delete(collection, namespace or None, name):
                wait_until_gone(session.api, collection, live)
        except (ApiError, AwaitError) as error:
            raise PluginError(f"failed to delete {self._kind} {id}: {error}") from None

    def _collection(self, session: ClusterSession) -> Collection | None:
        """The kind's collection; None if it may still be created; raises PluginError if it never will."""
        collection = session.api.collection(self._api_version, self._kind)
        if collection is None and not session.api.can_learn_kinds():
            raise PluginError(
                f'the emulated kubernetes plugin does not have the resource type "{self._api_version}:{self._kind}": '
                "the API server does not serve it and takes no custom resource definitions. "
                "`kubectl api-resources` lists what it serves."
            )
        return collection

    def _required(self, session: ClusterSession) -> Collection:
        if (collection := self._collection(session)) is None:
            raise PluginError(f'no matches for kind "{self._kind}" in version "{self._api_version}"')
        return collection

    def _create(
        self, session: ClusterSession, urn: str, namespace: str | None, document: Object
    ) -> tuple[Collection, Object]:
        """Create, with retries while the kind or the namespace does not exist yet."""
        for seconds in (*_PAUSES, None):
            try:
                if (collection := self._collection(session)) is not None:
                    return collection, session.api.create(collection, namespace, document, dry_run=False)
                if seconds is None:
                    raise PluginError(
                        f'creation of resource "{urn}" with kind {self._api_version}/{self._kind} failed because the '
                        "Kubernetes API server reported that the apiVersion for this resource does not exist. Verify "
                        f'that any required CRDs have been created: no matches for kind "{self._kind}" in version '
                        f'"{self._api_version}"'
                    )
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    raise _failed("not successfully created", urn, f"{error}{_EXISTS}") from None
                if error.code != httpx.codes.NOT_FOUND or seconds is None:
                    raise _failed("not successfully created", urn, error) from None
            pause(seconds)
        raise AssertionError("the last round returns or raises")

    def _ready(
        self, session: ClusterSession, urn: str, done: str, collection: Collection, live: Object, inputs: Props
    ) -> Object:
        """The object once it is ready; one that is not gets into the state all the same, as it exists."""
        try:
            return wait_until_ready(session.api, collection, live)
        except AwaitError as error:
            live, why = error.live, "".join(f"\n  * {reason}" for reason in error.reasons)
            failure = (
                f"the Kubernetes API server reported that it failed to fully initialize or become live: {error}{why}"
            )
        except PluginInterruptedError as error:
            failure = str(error)
        raise InitializationError(
            f'resource "{urn}" was successfully {done}, but {failure}', _id(live), objects.state_of(live, inputs)
        )


def _configured(session: ClusterSession | None) -> ClusterSession:
    if session is None:
        raise PluginError("the kubernetes provider is not configured: its kubeconfig is not known")
    return session


def _failed(what: str, urn: str, error: object) -> PluginError:
    return PluginError(f'resource "{urn}" was {what} by the Kubernetes API server: {error}')


def _id(live: dict[str, Any]) -> str:
    metadata = live["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


# kubernetes:<group>/<version>:<Kind>; the core group is called `core`.
_TOKEN: Final = re.compile(r"kubernetes:(?P<group>[^:/]+)/(?P<version>v\d[^:/]*):(?P<kind>[A-Z]\w*)")


class Kubernetes(Provider):
    """The provider. It has no functions."""

    name = "kubernetes"
    version = metadata.version("pulumi-kubernetes")

    def __init__(self) -> None:
        self._session: ClusterSession | None = None
        self._is_configured = False

    def check_config(self, urn: str, old: Props | None, new: Props) -> Checked:
        problem = refusal(new)
        # Without a property name the engine prints the reason alone, not the kubeconfig.
        return Checked(new, (CheckFailure("", problem),) if problem else ())

    def replacing(self, old: Props, new: Props) -> tuple[str, ...]:
        return () if is_the_same_cluster(old, new) else ("kubeconfig",)

    def configure(self, inputs: Props) -> None:
        settings = KubernetesProviderSettings.load(inputs)
        self._session = None if settings is None else ClusterSession(settings, Api(settings.connection))
        self._is_configured = True

    def resource(self, type_token: str) -> Resource:
        match = _TOKEN.fullmatch(type_token)
        if match is None:
            raise PluginError(f'the emulated kubernetes plugin does not have the resource type "{type_token}"')
        group, version = match["group"], match["version"]
        return ObjectResource(version if group == "core" else f"{group}/{version}", match["kind"], self._open_session)

    def _open_session(self) -> ClusterSession | None:
        if not self._is_configured:
            raise PluginError("the kubernetes provider is not configured")
        return self._session
