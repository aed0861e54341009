"""Init containers run one after the other before a pod's containers; sidecars go on beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localcloud.kubelet.client import PODS
from localcloud.kubelet.selection import condition
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
