"""The pods of this machine: a worker for each Pod object that is assigned to it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from localcloud.kubelet import addresses
from localcloud.kubelet import tree as trees
from localcloud.kubelet.azure_provider import AzureProvider
from localcloud.kubelet.containers import Node
from localcloud.kubelet.pods import PodPlace, PodWorker
from localcloud.kubelet.reflector import Key
from localcloud.kubernetes.calls import Object

_log = logging.getLogger(__name__)


class PodManager:
    """Starts a worker for each pod of node `name`, and stops it when the pod is gone."""

    def __init__(self, node: Node, provider: AzureProvider, mounts: Path, name: str) -> None:
        self._node = node
        self._provider = provider
        self._mounts = mounts
        self._name = name
        self._workers: dict[Key, PodWorker] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def pod_changed(self, key: Key) -> None:
        """Bring the worker in line with the Pod object."""
        pod = self._node.cluster.pods.objects.get(key)
        worker = self._workers.get(key)
        if worker is not None and (pod is None or pod["metadata"]["uid"] != worker.uid):
            self._remove(key, worker)
            worker = None
        if worker is None and pod is not None and pod["spec"].get("nodeName") == self._name:
            self._workers[key] = PodWorker(self._node, self._provider, pod, PodPlace(self._address(pod), self._mounts))

    def content_changed(self, namespace: str) -> None:
        """A Secret, ConfigMap or SecretProviderClass of the namespace has changed."""
        for (place, _), worker in self._workers.items():
            if place == namespace:
                worker.stir()

    async def stop(self) -> None:
        """Stop every pod; their objects stay and say so."""
        async with asyncio.TaskGroup() as group:
            for worker in self._workers.values():
                group.create_task(worker.stop(is_gone=False))
            for task in self._stopping:
                group.create_task(_finished(task))
        self._workers.clear()

    def _remove(self, key: Key, worker: PodWorker) -> None:
        del self._workers[key]
        task = asyncio.create_task(self._stop(worker))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def _stop(self, worker: PodWorker) -> None:
        await worker.stop(is_gone=True)
        for other in self._workers.values():
            if other.workload == worker.workload and other.is_mounted:
                trees.link(self._mounts, other.pod)
                return

    def _address(self, pod: Object) -> str:
        used = {worker.address for worker in self._workers.values()}
        known: str | None = pod.get("status", {}).get("podIP")
        return known if known and known not in used else addresses.allocate(pod["metadata"]["uid"], used)


async def _finished(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])
