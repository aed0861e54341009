"""The pods of this machine: a worker for each Pod object that is assigned to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

import httpx

from localcloud.kubelet import addresses
from localcloud.kubelet import tree as trees
from localcloud.kubelet.client import PODS
from localcloud.kubelet.containers import Node
from localcloud.kubelet.pods import PodWorker
from localcloud.kubelet.reflector import Key
from localcloud.kubelet.selection import is_terminating
from localcloud.kubernetes.calls import ApiError, Object

_RETRY: Final = 1.0
_SCHEDULER: Final = "default-scheduler"

_log = logging.getLogger(__name__)


class PodManager:
    """Starts a worker for each pod of node `name`, and stops it when the pod is gone."""

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        self._name = name
        self._workers: dict[Key, PodWorker] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._binding: dict[str, asyncio.Task[None]] = {}

    def pod_changed(self, key: Key) -> None:
        """Start or stop the worker of this pod, as its cached object says."""
        pod = self._node.cluster.pods.objects.get(key)
        worker = self._workers.get(key)
        if worker is not None and (pod is None or pod["metadata"]["uid"] != worker.uid or is_terminating(pod)):
            del self._workers[key]
            self._begin(worker.uid, self._stop(worker))
            worker = None
        if worker is not None or pod is None:
            return
        if self._is_unscheduled(pod):
            self._bind(pod)
        if pod["spec"].get("nodeName") != self._name:
            return
        if not is_terminating(pod):
            self._workers[key] = PodWorker(self._node, pod, self._address(pod))
        elif pod["metadata"]["uid"] not in self._stopping:
            # None of its processes runs: an earlier kubelet was killed.
            self._begin(pod["metadata"]["uid"], self._confirm(key, pod["metadata"]["uid"]))

    def content_changed(self, namespace: str) -> None:
        """Update the volumes of the namespace's pods: a Secret, ConfigMap or SecretProviderClass has changed."""
        for (place, _), worker in self._workers.items():
            if place == namespace:
                worker.wake()

    def vault_changed(self) -> None:
        """Poll the vaults of all mounts: a secret or its roles may have changed."""
        for worker in self._workers.values():
            if worker.rotates:
                worker.wake()

    async def stop(self) -> None:
        """Stop every pod; their objects stay, and their status reports it."""
        async with asyncio.TaskGroup() as group:
            for worker in self._workers.values():
                group.create_task(worker.stop(is_gone=False))
            for task in self._stopping.values():
                group.create_task(_finished(task))
            for task in self._binding.values():
                group.create_task(_finished(task))
        self._workers.clear()

    def _is_unscheduled(self, pod: Object) -> bool:
        """Whether the pod waits for the scheduler, which is this node too."""
        spec = pod["spec"]
        is_ours = spec.get("schedulerName", _SCHEDULER) == _SCHEDULER and not spec.get("schedulingGates")
        return is_ours and not spec.get("nodeName") and not is_terminating(pod)

    def _bind(self, pod: Object) -> None:
        if pod["metadata"]["uid"] not in self._binding:
            task = self._binding[pod["metadata"]["uid"]] = asyncio.create_task(self._assign(pod))
            task.add_done_callback(lambda _: self._binding.pop(pod["metadata"]["uid"], None))

    async def _assign(self, pod: Object) -> None:
        """Assign a pod to this node, as the scheduler does by a Binding."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        try:
            await self._node.cluster.client.bind(pod, self._name)
        except (ApiError, httpx.HTTPError) as error:
            _log.warning("pod %s/%s is not assigned: %s", namespace, name, error)
            asyncio.get_running_loop().call_later(_RETRY, self.pod_changed, (namespace, name))
            return
        assigned = {**pod, "spec": {**pod["spec"], "nodeName": self._name}}
        text = f"Successfully assigned {namespace}/{name} to {self._name}"
        await self._node.recorder.normal(assigned, "Scheduled", text)

    def _begin(self, uid: str, end: Coroutine[Any, Any, None]) -> None:
        task = self._stopping[uid] = asyncio.create_task(end)
        task.add_done_callback(lambda _: self._stopping.pop(uid, None))

    async def _stop(self, worker: PodWorker) -> None:
        await worker.stop(is_gone=True)
        for other in self._workers.values():
            if other.workload == worker.workload and other.is_mounted:
                trees.link(self._node.mounts, other.pod)
                break
        metadata = worker.pod["metadata"]
        await self._confirm((metadata["namespace"], metadata["name"]), worker.uid)

    async def _confirm(self, key: Key, uid: str) -> None:
        """Delete a pod from the API whose processes have ended."""
        pod = self._node.cluster.pods.objects.get(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return  # it was deleted without waiting
        try:
            await self._node.cluster.client.delete(PODS, *key, uid=uid)
        except (ApiError, httpx.HTTPError) as error:
            _log.warning("the end of pod %s/%s is not confirmed: %s", *key, error)
            asyncio.get_running_loop().call_later(_RETRY, self.pod_changed, key)

    def _address(self, pod: Object) -> str:
        used = {worker.address for worker in self._workers.values()}
        known: str | None = pod.get("status", {}).get("podIP")
        return known if known and known not in used else addresses.allocate(pod["metadata"]["uid"], used)


async def _finished(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])
