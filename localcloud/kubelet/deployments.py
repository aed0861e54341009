"""The Deployment controller: one Pod object per replica, rollouts, status."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Final

import httpx

from localcloud.core import clock
from localcloud.kubelet import rollout
from localcloud.kubelet.client import DEPLOYMENTS, PODS
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.reflector import Key
from localcloud.kubelet.selection import controller_of, is_terminating
from localcloud.kubernetes.calls import ApiError, Object

_RETRY: Final = 1.0
# Kubernetes' own alphabet for name suffixes: no vowels, no words (apimachinery `pkg/util/rand`).
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"

_log = logging.getLogger(__name__)


class DeploymentController:
    """Reconciles Deployments one at a time, each whenever it or one of its pods changed."""

    def __init__(self, cluster: ClusterCache, node: str) -> None:
        self._cluster = cluster
        self._node = node
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()

    def deployment_changed(self, key: Key) -> None:
        """Queue this Deployment, unless it is queued already."""
        if key not in self._queued:
            self._queued.add(key)
            self._queue.put_nowait(key)

    def pod_changed(self, key: Key) -> None:
        """Queue the Deployment that owns this pod; for a deleted pod it is derived from the pod's name."""
        namespace, name = key
        pod = self._cluster.pods.objects.get(key)
        owner = controller_of(pod) if pod else None
        # <deployment>-<template hash>-<suffix>
        self.deployment_changed((namespace, owner["name"] if owner else name.rsplit("-", 2)[0]))

    async def run(self) -> None:
        """Reconcile until cancelled. Starts once both collections are known, or every pod would seem to be missing."""
        await self._cluster.deployments.synced.wait()
        await self._cluster.pods.synced.wait()
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            try:
                await self._reconcile(key)
            except (ApiError, httpx.HTTPError) as error:
                _log.warning("deployment %s/%s: %s", *key, error)
                asyncio.get_running_loop().call_later(_RETRY, self.deployment_changed, key)

    async def settle(self) -> None:
        """Write every Deployment's status once more, after the pods were stopped."""
        for deployment in list(self._cluster.deployments.objects.values()):
            pods = [await self._cluster.client.get(PODS, *_key(pod)) for pod in self._pods_of(deployment)]
            await self._write_status(deployment, [pod for pod in pods if pod])

    async def _reconcile(self, key: Key) -> None:
        deployment = self._cluster.deployments.objects.get(key)
        client, pods = self._cluster.client, self._cluster.pods
        if deployment is None:
            # The API server's garbage collector does this where there is one.
            for pod in [pod for pod in pods.objects.values() if _was_kept_by(pod, key)]:
                await client.delete(PODS, *_key(pod))
                pods.forget(_key(pod))
            return
        present = self._pods_of(deployment)
        if is_terminating(deployment):
            await self._write_status(deployment, present)
            return  # the garbage collector has its pods
        step = rollout.plan(deployment, present)
        for pod in step.delete:
            await client.delete(PODS, *_key(pod))
            pods.forget(_key(pod))
        if step.create and not await self._is_there(deployment):
            return  # the events of its pods' deletion came before that of its own
        for _ in range(step.create):
            suffix = "".join(secrets.choice(_ALPHABET) for _ in range(5))
            pod = await client.create(PODS, key[0], rollout.pod_of(deployment, suffix, self._node))
            pods.remember(pod)
        await self._write_status(deployment, self._pods_of(deployment))

    async def _write_status(self, deployment: Object, pods: list[Object]) -> None:
        status = rollout.status(deployment, pods, clock.rfc3339(clock.now()))
        present = deployment.get("status", {})
        if any(present.get(field) != value for field, value in status.items()):
            merged = await self._cluster.client.merge(
                DEPLOYMENTS, *_key(deployment), {"status": status}, subresource="status"
            )
            self._cluster.deployments.remember(merged)

    async def _is_there(self, deployment: Object) -> bool:
        live = await self._cluster.client.get(DEPLOYMENTS, *_key(deployment))
        return live is not None and live["metadata"]["uid"] == deployment["metadata"]["uid"]

    def _pods_of(self, deployment: Object) -> list[Object]:
        uid = deployment["metadata"]["uid"]
        return [
            pod
            for pod in self._cluster.pods.objects.values()
            if (controller_of(pod) or {}).get("uid") == uid and not is_terminating(pod)
        ]


def _was_kept_by(pod: Object, deployment: Key) -> bool:
    owner = controller_of(pod)
    return (
        owner is not None
        and owner["kind"] == "Deployment"
        and (pod["metadata"]["namespace"], owner["name"]) == deployment
    )


def _key(document: Object) -> Key:
    return document["metadata"]["namespace"], document["metadata"]["name"]
