"""The kubelet's process: start, follow the cluster, stop cleanly."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
import signal
import ssl
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import closing, suppress
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

import httpx

from localcloud.core.clouds import LocalEnvironment, local_cloud
from localcloud.core.cluster import ClusterKind
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import StoreChanges
from localcloud.kubelet import selection
from localcloud.kubelet.azure_provider import AzureProvider
from localcloud.kubelet.client import DEPLOYMENTS, PODS, REPLICA_SETS, ApiClient, ApiResource, EventRecorder
from localcloud.kubelet.cluster import ClusterCache, Key, key_of
from localcloud.kubelet.commands import Machine
from localcloud.kubelet.containers import Intervals, Node
from localcloud.kubelet.deployments import DeploymentController
from localcloud.kubelet.http_get import HttpGetter
from localcloud.kubelet.pods import PodWorker
from localcloud.kubelet.selection import is_terminating
from localcloud.kubelet.server import KubeletServer
from localcloud.kubelet.services import Record, ServiceProxy
from localcloud.kubernetes.calls import ApiError, Object
from localcloud.kubernetes.kubeconfig import connection

# Loopback addresses for pods.


# 127.64.0.1 and up: other programs use the low addresses of 127/8 (127.0.0.1, 127.0.0.53, 127.0.1.1).
_FIRST: Final = int(IPv4Address("127.64.0.1"))
_COUNT: Final = int(IPv4Address("127.254.255.254")) - _FIRST


def allocate(uid: str, used: Collection[str]) -> str:
    """An address for the pod with this uid that no other pod uses."""
    start = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8])
    for step in range(_COUNT):
        address = str(IPv4Address(_FIRST + (start + step) % _COUNT))
        if address not in used:
            return address
    raise RuntimeError("every loopback address is taken")


# The pods of this machine: a worker for each Pod object that is assigned to it.

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
        self._ending: set[PodWorker] = set()
        self._records: Sequence[Record] = ()
        self._binding: dict[str, asyncio.Task[None]] = {}

    def pod_changed(self, key: Key) -> None:
        """Start or stop the worker of this pod, as its cached object says."""
        pod = self._node.cluster.pods.objects.get(key)
        worker = self._workers.get(key)
        if worker is not None and (pod is None or pod["metadata"]["uid"] != worker.uid or is_terminating(pod)):
            del self._workers[key]
            _begin(self._stopping, worker.uid, partial(self._stop, worker))
            worker = None
        if worker is not None or pod is None:
            return
        # Whether it waits for the scheduler, which is this node too.
        spec, is_ending = pod["spec"], is_terminating(pod)
        is_ours = spec.get("schedulerName", _SCHEDULER) == _SCHEDULER and not spec.get("schedulingGates")
        if is_ours and not spec.get("nodeName") and not is_ending:
            _begin(self._binding, pod["metadata"]["uid"], partial(self._assign, pod))
        if spec.get("nodeName") != self._name:
            return
        if not is_ending:
            self._workers[key] = PodWorker(self._node, pod, self._address(pod), self._records)
        else:
            # None of its processes runs: an earlier kubelet was killed.
            _begin(self._stopping, pod["metadata"]["uid"], partial(self._confirm, key, pod["metadata"]["uid"]))

    def content_changed(self, namespace: str) -> None:
        """Update the volumes of the namespace's pods: a Secret, ConfigMap or SecretProviderClass has changed."""
        for (place, _), worker in self._workers.items():
            if place == namespace:
                worker.wake()

    def named(self, records: Sequence[Record]) -> None:
        """Tell every pod the names of the Services."""
        self._records = records
        for worker in self._workers.values():
            worker.name(records)

    def vault_changed(self) -> None:
        """Poll the vaults of all mounts: a secret or its roles may have changed."""
        for worker in self._workers.values():
            if worker.rotates:
                worker.wake()

    async def stop(self) -> None:
        """Stop every pod; their objects stay, and their status reports it."""
        async with asyncio.TaskGroup() as group:
            for worker in self._workers.values():
                group.create_task(worker.stop(None))
            if tasks := [*self._stopping.values(), *self._binding.values()]:
                await asyncio.wait(tasks, timeout=self._node.intervals.ending)
                for worker in self._ending:
                    worker.kill()
                await asyncio.wait(tasks)
        self._workers.clear()

    async def _assign(self, pod: Object) -> None:
        """Assign a pod to this node, as the scheduler does by a Binding."""
        namespace, name = key = key_of(pod)
        if not await self._done(key, "not assigned", self._node.cluster.client.bind(pod, self._name)):
            return
        assigned = {**pod, "spec": {**pod["spec"], "nodeName": self._name}}
        text = f"Successfully assigned {namespace}/{name} to {self._name}"
        await self._node.recorder.record(assigned, "Scheduled", text, type_="Normal")

    async def _done(self, key: Key, failed: str, call: Coroutine[Any, Any, None]) -> bool:
        """Whether a call about a pod succeeded; after another one the pod is looked at again."""
        try:
            await call
        except (ApiError, httpx.HTTPError) as error:
            _log.warning("pod %s/%s is %s: %s", *key, failed, error)
            asyncio.get_running_loop().call_later(_RETRY, self.pod_changed, key)
            return False
        return True

    async def _stop(self, worker: PodWorker) -> None:
        key = key_of(worker.pod)
        self._ending.add(worker)
        await worker.stop(self._node.cluster.pods.objects.get(key, worker.pod))
        self._ending.remove(worker)
        for other in self._workers.values():
            if other.workload == worker.workload and other.is_mounted:
                selection.link(self._node.mounts, other.pod)
                break
        await self._confirm(key, worker.uid)

    async def _confirm(self, key: Key, uid: str) -> None:
        """Delete a pod from the API whose processes have ended."""
        pod = self._node.cluster.pods.objects.get(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return  # it was deleted without waiting
        await self._done(key, "not confirmed to have ended", self._node.cluster.client.delete(PODS, *key, uid=uid))

    def _address(self, pod: Object) -> str:
        used = {worker.address for worker in self._workers.values()}
        known: str | None = pod.get("status", {}).get("podIP")
        return known if known and known not in used else allocate(pod["metadata"]["uid"], used)


def _begin(tasks: dict[str, asyncio.Task[None]], uid: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a task for a pod, unless it has one of the kind."""
    if uid not in tasks:
        task = tasks[uid] = asyncio.create_task(run())
        task.add_done_callback(lambda _: tasks.pop(uid, None))


NODE: Final = "local"
_PROGRAMS: Final = "LOCALCLOUD_PROGRAMS"


def run(environment: LocalEnvironment, kubeconfig: Path) -> None:
    """Run the kubelet until SIGTERM or SIGINT; then end every process it started and remove every mount."""
    asyncio.run(_run_until_signal(environment, kubeconfig))


async def _run_until_signal(environment: LocalEnvironment, kubeconfig: Path) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await serve(environment, kubeconfig, stopped, Intervals())


async def serve(environment: LocalEnvironment, kubeconfig: Path, stopped: asyncio.Event, intervals: Intervals) -> None:
    """Run the kubelet, signed in with `kubeconfig`, until `stopped` is set."""
    mounts = Path(environment.mounts_dir)
    _clear(mounts)
    client = ApiClient(connection(str(kubeconfig)))
    trusting = ssl.create_default_context(cafile=environment.ca_file)
    async with httpx.AsyncClient(verify=trusting, trust_env=False) as azure:
        kubelet = _Kubelet(environment, client, azure, intervals)
        await kubelet.run(stopped)
    await client.close()
    _clear(mounts)


class _Kubelet:
    """Reflectors, pod workers and the Deployment controller, and which change wakes which."""

    def __init__(
        self,
        environment: LocalEnvironment,
        client: ApiClient,
        azure: httpx.AsyncClient,
        intervals: Intervals,
    ) -> None:
        self._intervals = intervals
        self._store = StateDirectory(Path(environment.state_dir)).store_file
        self._cluster = ClusterCache(client, self._changed)
        named = os.environ.get(_PROGRAMS)
        programs = Path(named) if named else None
        node = Node(
            cluster=self._cluster,
            recorder=EventRecorder(client),
            intervals=intervals,
            http=HttpGetter(),
            machine=Machine(environment.ca_file, environment.kubernetes_endpoint, programs),
            provider=AzureProvider(local_cloud(environment), environment.imds_endpoint, azure),
            state_dir=Path(environment.state_dir),
            mounts=Path(environment.mounts_dir),
        )
        self._pods = PodManager(node, NODE)
        self._deployments = DeploymentController(self._cluster, NODE)
        self._services = ServiceProxy(self._cluster, environment.kubernetes_endpoint, self._pods.named)
        self._server = KubeletServer(StateDirectory(node.state_dir), NODE, lambda: self._cluster.pods.objects)
        self._is_asked = environment.cluster == ClusterKind.API_SERVER  # the built-in API has logs and Services itself

    async def run(self, stopped: asyncio.Event) -> None:
        """Follow the cluster until `stopped`, then stop the pods and report it in their status."""
        following = asyncio.create_task(self._follow())
        waiting = asyncio.create_task(stopped.wait())
        await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        following.cancel()
        try:
            with suppress(asyncio.CancelledError):
                await following
        finally:
            await self._pods.stop()
            with suppress(ApiError, httpx.HTTPError):
                await self._deployments.settle()

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cluster.run())
            group.create_task(self._deployments.run())
            if self._is_asked:
                group.create_task(self._services.run())
                group.create_task(self._server.run(self._cluster.client))
            if self._store.exists():
                group.create_task(self._follow_store())

    async def _follow_store(self) -> None:
        # A real driver polls the vault of each mount. Here ten mounts of an idle cluster would keep the vault busy.
        with closing(StoreChanges(self._store)) as changes:
            while True:
                await asyncio.sleep(self._intervals.change)
                if changes.since_last():
                    self._pods.vault_changed()

    def _changed(self, resource: ApiResource, key: Key) -> None:
        if resource is DEPLOYMENTS:
            self._deployments.deployment_changed(key)
        elif resource is REPLICA_SETS:
            self._deployments.replica_set_changed(key)
        elif resource is PODS:
            self._pods.pod_changed(key)
            self._deployments.pod_changed(key)
            self._services.pod_changed()
        else:
            self._pods.content_changed(key[0])


def _clear(mounts: Path) -> None:
    """Empty the mounts directory: only the kubelet uses it, and a killed one may have left files."""
    mounts.mkdir(mode=0o700, parents=True, exist_ok=True)
    for entry in mounts.iterdir():
        shutil.rmtree(entry, ignore_errors=True)
