"""The kubelet's process: start, follow the cluster, stop cleanly."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import ssl
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import httpx

from localcloud.core.clouds import LocalEnvironment, local_cloud
from localcloud.core.cluster import ClusterKind
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import StoreChanges
from localcloud.kubelet.azure_provider import AzureProvider
from localcloud.kubelet.client import DEPLOYMENTS, PODS, REPLICA_SETS, ApiClient, ApiResource
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.commands import Machine
from localcloud.kubelet.containers import Node
from localcloud.kubelet.deployments import DeploymentController
from localcloud.kubelet.events import EventRecorder
from localcloud.kubelet.http_get import HttpGetter
from localcloud.kubelet.intervals import Intervals
from localcloud.kubelet.node import PodManager
from localcloud.kubelet.reflector import Key
from localcloud.kubelet.services import ServiceProxy
from localcloud.kubernetes.calls import ApiError
from localcloud.kubernetes.kubeconfig import connection

NODE: Final = "local"
_PROGRAMS: Final = "LOCALCLOUD_PROGRAMS"

_log = logging.getLogger(__name__)


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
        node = Node(
            cluster=self._cluster,
            recorder=EventRecorder(client),
            intervals=intervals,
            http=HttpGetter(),
            machine=Machine(environment.ca_file, environment.kubernetes_endpoint, _programs()),
            provider=AzureProvider(local_cloud(environment), environment.imds_endpoint, azure),
            state_dir=Path(environment.state_dir),
            mounts=Path(environment.mounts_dir),
        )
        self._pods = PodManager(node, NODE)
        self._deployments = DeploymentController(self._cluster, NODE)
        self._services = ServiceProxy(self._cluster, environment.kubernetes_endpoint)
        self._has_services = environment.cluster == ClusterKind.API_SERVER

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
            if self._has_services:
                group.create_task(self._services.run())
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
        else:
            self._pods.content_changed(key[0])


def _programs() -> Path | None:
    named = os.environ.get(_PROGRAMS)
    return Path(named) if named else None


def _clear(mounts: Path) -> None:
    """Empty the mounts directory: only the kubelet uses it, and a killed one may have left files."""
    mounts.mkdir(mode=0o700, parents=True, exist_ok=True)
    for entry in mounts.iterdir():
        shutil.rmtree(entry, ignore_errors=True)
