"""The kubelet's view of the cluster: local copies of the collections it follows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
from localcloud.kubelet.reflector import Key, Reflector
from localcloud.kubernetes.calls import Object

Changed = Callable[[ApiResource, Key], None]


class ClusterCache:
    """Deployments, ReplicaSets, Pods and what Pods mount.

    `changed` is called on every change, with the resource and key.
    """

    def __init__(self, client: ApiClient, changed: Changed) -> None:
        self.client = client
        self.deployments = self._follow(DEPLOYMENTS, changed)
        self.replica_sets = self._follow(REPLICA_SETS, changed)
        self.pods = self._follow(PODS, changed)
        self._secrets = self._follow(SECRETS, changed)
        self._config_maps = self._follow(CONFIG_MAPS, changed)
        self._classes = self._follow(SECRET_PROVIDER_CLASSES, changed)

    async def run(self) -> None:
        """Follow every collection until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in (
                self.deployments,
                self.replica_sets,
                self.pods,
                self._secrets,
                self._config_maps,
                self._classes,
            ):
                group.create_task(reflector.run())

    async def secret(self, namespace: str, name: str) -> Object | None:
        """The Secret, None if it does not exist."""
        return await self._one(SECRETS, self._secrets, namespace, name)

    async def config_map(self, namespace: str, name: str) -> Object | None:
        """The ConfigMap, None if it does not exist."""
        return await self._one(CONFIG_MAPS, self._config_maps, namespace, name)

    async def secret_provider_class(self, namespace: str, name: str) -> Object | None:
        """The SecretProviderClass, None if it does not exist."""
        return await self._one(SECRET_PROVIDER_CLASSES, self._classes, namespace, name)

    async def _one(self, resource: ApiResource, copy: Reflector, namespace: str, name: str) -> Object | None:
        # Each collection has its own watch: a new pod may arrive before the older objects that it mounts.
        known = copy.objects.get((namespace, name))
        return known if known or not name else await self.client.get(resource, namespace, name)

    def _follow(self, resource: ApiResource, changed: Changed) -> Reflector:
        return Reflector(self.client, resource, lambda key: changed(resource, key))
