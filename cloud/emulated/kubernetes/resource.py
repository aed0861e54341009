"""One kind of object as a resource: check, diff, create, read, update, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx

from emulated.kubernetes import inputs as objects
from emulated.kubernetes.client import Api, Collection
from emulated.kubernetes.difference import difference
from emulated.kubernetes.settings import KubernetesProviderSettings
from emulated.kubernetes.waiting import AwaitError, wait_until_gone, wait_until_ready
from localcloud.kubernetes.calls import ApiError, Object
from plugin import (
    Checked,
    Created,
    Diff,
    InitializationError,
    PluginError,
    PluginInterruptedError,
    Props,
    ReadResult,
    Resource,
    contains_unknown,
    pause,
    unwrap,
)

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
