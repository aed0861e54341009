"""A pod's worker: its init containers, the pauses before one runs again, and changes at one and the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import httpx
import pytest

from localcloud.core.clouds import LocalEnvironment, local_cloud
from localcloud.kubelet import containers
from localcloud.kubelet.azure_provider import AzureProvider
from localcloud.kubelet.client import PODS, ApiClient, EventRecorder
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.commands import Machine
from localcloud.kubelet.containers import Container, Intervals, Node
from localcloud.kubelet.http_get import HttpGetter
from localcloud.kubelet.pods import PodWorker
from localcloud.kubelet.selection import condition
from localcloud.kubernetes.kubeconfig import connection
from tests.kubelet_world import ClusterApi, Kubelet, Object, pod, states

SCRATCH: Object = {"name": "scratch", "emptyDir": {}}


def init(name: str, script: str, **fields: Any) -> Object:
    """An init container that runs a script of the shell."""
    mounts = [{"name": "scratch", "mountPath": "/mnt/scratch"}]
    return {"name": name, "image": "i", "command": ["sh", "-c", script], "volumeMounts": mounts, **fields}


def first_states(web: Object) -> dict[str, dict[str, Any]]:
    return {
        init_container_status["name"]: init_container_status["state"]
        for init_container_status in web.get("status", {}).get("initContainerStatuses", [])
    }


def test_they_run_in_order_before_the_containers_on_the_same_files(cluster: ClusterApi, kubelet: Kubelet) -> None:
    order = "/mnt/scratch/order"
    first = [init("a", f"echo a >> {order}"), init("b", f"echo b >> {order}")]

    cluster.create(PODS, pod("web", SCRATCH, spec={"initContainers": first}, command=["sh", "-c", f"cat {order}"]))
    web = cluster.finished("web")

    assert kubelet.log("web") == "a\nb\n"
    assert {name: first_state["terminated"]["exitCode"] for name, first_state in first_states(web).items()} == {
        "a": 0,
        "b": 0,
    }
    assert condition(web, "Initialized")["status"] == "True"


def test_one_that_fails_runs_again_until_it_succeeds(cluster: ClusterApi, kubelet: Kubelet, tmp_path: Path) -> None:
    present = tmp_path / "present"
    spec = {"initContainers": [init("a", f"test -e {present}")], "restartPolicy": "Always"}
    cluster.create(PODS, pod("web", SCRATCH, spec=spec))
    waiting = cluster.once_pod("web", lambda web: "waiting" in first_states(web).get("a", {}) and _restarts(web))
    assert states(waiting)["c"] == {"waiting": {"reason": "PodInitializing"}}
    assert waiting["status"]["phase"] == "Pending"
    assert condition(waiting, "Initialized")["reason"] == "ContainersNotInitialized"

    present.touch()

    cluster.ready("web")


def test_one_that_fails_for_good_fails_the_pod(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(PODS, pod("web", SCRATCH, spec={"initContainers": [init("a", "exit 3"), init("b", "true")]}))

    web = cluster.finished("web")

    assert web["status"]["phase"] == "Failed"
    assert kubelet.processes() == []


def test_a_sidecar_goes_on_beside_the_containers(cluster: ClusterApi, kubelet: Kubelet) -> None:
    sidecar = init("a", "exec sleep 600", restartPolicy="Always")
    cluster.create(PODS, pod("web", SCRATCH, spec={"initContainers": [sidecar], "restartPolicy": "Always"}))

    web = cluster.ready("web")

    assert "running" in first_states(web)["a"]
    assert len(kubelet.processes()) == 2


def _restarts(web: Object) -> bool:
    return any(
        init_container_status["restartCount"] for init_container_status in web["status"]["initContainerStatuses"]
    )


class Warned(asyncio.Event):
    """A recorder that is set by the first event."""

    async def record(self, _: Object, reason: str, message: str) -> None:
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
            _, pending = await asyncio.wait([asyncio.create_task(worker.stop(made))], timeout=60)
            assert not pending
        await client.close()

    asyncio.run(run())


_INTERVALS = Intervals(restart=(1.0, 4.0), steady=60.0)


def _pauses(monkeypatch: pytest.MonkeyPatch, runs: Sequence[float]) -> list[float]:
    """The pauses after runs of so many seconds, each of which fails."""
    pauses: list[float] = []
    left, now = list(runs), [0.0]

    async def run_once(_: Container) -> int:
        now[0] += left.pop(0)
        return 1

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if not left:
            raise asyncio.CancelledError

    loop = SimpleNamespace(time=lambda: now[0])
    monkeypatch.setattr(
        containers, "asyncio", SimpleNamespace(sleep=sleep, get_running_loop=lambda: loop, Event=asyncio.Event)
    )
    monkeypatch.setattr(Container, "_run_once", run_once)
    node: Any = SimpleNamespace(intervals=_INTERVALS, recorder=AsyncMock())
    container = Container(node, {"spec": {}}, {"name": "c"}, Path(), lambda: None, restart_policy="Always")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(container.run())
    return pauses


def test_the_pauses_of_a_container_that_ends_at_once_grow_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _pauses(monkeypatch, [0.1] * 5) == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_after_a_steady_run_the_pauses_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _pauses(monkeypatch, [0.1, 0.1, 60.0, 0.1]) == [1.0, 2.0, 1.0, 2.0]
