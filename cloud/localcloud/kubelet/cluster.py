"""The kubelet's view of the cluster: local copies of the collections it follows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import httpx

from localcloud.kubelet.client import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    SECRET_PROVIDER_CLASSES,
    SECRETS,
    ApiClient,
    ApiResource,
)
from localcloud.kubernetes import patches
from localcloud.kubernetes.calls import ApiError, Object

# A local copy of one collection, kept up to date by list and watch (client-go's reflector, without its queue).

Key = tuple[str, str]
"""Namespace and name."""

# Between attempts while the API server does not answer, in seconds.
_RETRY: Final = 1.0

_log = logging.getLogger(__name__)


class Reflector:
    """All objects of a collection; calls `changed` with the key of each object that changed."""

    def __init__(self, client: ApiClient, resource: ApiResource, changed: Callable[[Key], None]) -> None:
        self._client = client
        self._resource = resource
        self._changed = changed
        self._objects: dict[Key, Object] = {}
        self._version = 0
        self.synced = asyncio.Event()

    @property
    def objects(self) -> Mapping[Key, Object]:
        """The copy; empty until `synced` is set."""
        return MappingProxyType(self._objects)

    def remember(self, document: Object) -> None:
        """Add an object that this process has just written, without waiting for the watch.

        Nothing happens if the watch is ahead: it has delivered this write and later ones.
        """
        if _version(document) > self._version:
            self._objects[key_of(document)] = document
            self._changed(key_of(document))

    async def create(self, document: Object) -> Object:
        """Create an object; returns it as stored. Raises `ApiError`."""
        created = await self._client.create(self._resource, document["metadata"]["namespace"], document)
        self.remember(created)
        return created

    async def change(self, document: Object, patch: Object, *, subresource: str | None = None) -> None:
        """Merge `patch` into an object or its `subresource`, unless that changes nothing. Raises `ApiError`."""
        if patches.merge(document, patch) != document:
            merged = await self._client.merge(self._resource, *key_of(document), patch, subresource=subresource)
            self.remember(merged)

    async def delete(self, document: Object) -> None:
        """Delete an object. Raises `ApiError`."""
        key = key_of(document)
        await self._client.delete(self._resource, *key)
        if self._objects.pop(key, None) is not None:
            self._changed(key)

    async def run(self) -> None:
        while True:
            try:
                await self._list()
                while True:
                    await self._follow()
            except (ApiError, httpx.HTTPError) as error:
                # 410: too far behind, list again. 404: a custom kind that the server does not have (yet).
                if not isinstance(error, ApiError) or error.code not in {410, 404}:
                    _log.warning("watching %s: %s", self._resource.plural, error or type(error).__name__)
                await asyncio.sleep(_RETRY)

    async def _list(self) -> None:
        items, version = await self._client.list(self._resource)
        objects = {key_of(item): item for item in items}
        differing = {key for key in {*objects, *self._objects} if objects.get(key) != self._objects.get(key)}
        self._objects = objects
        self._version = int(version)
        self.synced.set()
        for key in differing:
            self._changed(key)

    async def _follow(self) -> None:
        async for type_, document in self._client.watch(self._resource, str(self._version)):
            key = key_of(document)
            self._version = _version(document)
            if key in self._objects and self._version < _version(self._objects[key]):
                continue  # the echo of an earlier write than the one remembered
            if type_ == "DELETED":
                self._objects.pop(key, None)
            else:
                self._objects[key] = document
            self._changed(key)


def _version(document: Object) -> int:
    return int(document["metadata"]["resourceVersion"])


def key_of(document: Object) -> Key:
    return document["metadata"]["namespace"], document["metadata"]["name"]


_FOLLOWED: Final = (DEPLOYMENTS, REPLICA_SETS, PODS, SECRETS, CONFIG_MAPS, SECRET_PROVIDER_CLASSES)


class ClusterCache:
    """Deployments, ReplicaSets, Pods and what Pods mount.

    `changed` is called on every change, with the resource and key.
    """

    def __init__(self, client: ApiClient, changed: Callable[[ApiResource, Key], None]) -> None:
        self.client = client
        self._copies = {resource: Reflector(client, resource, partial(changed, resource)) for resource in _FOLLOWED}
        self.deployments, self.replica_sets, self.pods = map(self._copies.__getitem__, _FOLLOWED[:3])

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in self._copies.values():
                group.create_task(reflector.run())

    async def find(self, resource: ApiResource, namespace: str, name: str) -> Object | None:
        """The object of a collection that is followed, None if there is none; raises `ApiError`."""
        # Each collection has its own watch: a new pod may arrive before the older objects that it mounts.
        known = self._copies[resource].objects.get((namespace, name))
        return known if known or not name else await self.client.get(resource, namespace, name)
