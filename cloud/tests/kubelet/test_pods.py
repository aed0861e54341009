"""A pod's worker where the running kubelet would hide what happens at one and the same moment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import httpx

from localcloud.core.clouds import LocalEnvironment, local_cloud
from localcloud.kubelet.azure_provider import AzureProvider
from localcloud.kubelet.client import PODS, ApiClient, EventRecorder
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.commands import Machine
from localcloud.kubelet.containers import Intervals, Node
from localcloud.kubelet.http_get import HttpGetter
from localcloud.kubelet.pods import PodWorker
from localcloud.kubernetes.calls import Object
from localcloud.kubernetes.kubeconfig import connection
from tests.kubelet_world import ClusterApi, pod


class Warned(asyncio.Event):
    """A recorder that is set by the first warning."""

    async def warning(self, _: Object, reason: str, message: str) -> None:
        self.set()


def test_a_pod_that_is_stopped_while_its_secret_changes_does_stop(
    cluster: ClusterApi, environment: LocalEnvironment, tmp_path: Path
) -> None:
    made = cluster.create(PODS, pod("web", {"name": "v", "secret": {"secretName": "none"}}))
    never = Intervals(mount=(600, 600))

    async def run() -> None:
        warned = Warned()
        client = ApiClient(connection(environment.kubeconfig))
        async with httpx.AsyncClient() as http:
            copies = ClusterCache(client, lambda *_: None)
            machine = Machine(environment.ca_file, environment.kubernetes_endpoint)
            provider = AzureProvider(local_cloud(environment), environment.imds_endpoint, http)
            recorder, mounts = cast(EventRecorder, warned), tmp_path / "mounts"
            node = Node(copies, recorder, never, HttpGetter(), machine, provider, tmp_path, mounts)
            worker = PodWorker(node, made, "127.64.0.1")
            await warned.wait()
            await asyncio.sleep(0)
            worker.wake()
            _, pending = await asyncio.wait([asyncio.create_task(worker.stop(is_gone=True))], timeout=60)
            assert not pending
        await client.close()

    asyncio.run(run())
