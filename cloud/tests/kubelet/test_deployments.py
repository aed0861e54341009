"""Deployments: their pods, roll-outs, status, and what a deletion takes along."""

from __future__ import annotations

from typing import Any

from localcloud.kubelet.client import DEPLOYMENTS, PODS, REPLICA_SETS
from localcloud.kubelet.deployments import REVISION
from localcloud.kubelet.selection import condition, controller_of, is_ready
from localcloud.testing.kubernetes import deployment
from localcloud.testing.running import ended
from tests.kubelet_world import ClusterApi, Kubelet, Object, csi_volume, running


def web(replicas: int = 1, *, version: str = "1", strategy: str = "RollingUpdate", **pod: Any) -> Object:
    """A Deployment whose template differs by `version`; `pod` are further fields of the pod's spec."""
    document = deployment(container={"env": [{"name": "VERSION", "value": version}]}, **pod)
    document["spec"] |= {"replicas": replicas, "strategy": {"type": strategy}}
    return document


def is_observed(deployment: Object) -> bool:
    """Whether the status is about the newest generation."""
    observed: bool = deployment.get("status", {}).get("observedGeneration") == deployment["metadata"]["generation"]
    return observed


def rolled_out(cluster: ClusterApi, name: str = "web") -> Object:
    """The Deployment, once its newest generation is complete."""

    def complete(items: list[Object]) -> Object | None:
        (found,) = (item for item in items if item["metadata"]["name"] == name)
        reason = condition(found, "Progressing").get("reason")
        return found if is_observed(found) and reason == "NewReplicaSetAvailable" else None

    return cluster.once(DEPLOYMENTS, complete)


def deployed(cluster: ClusterApi, document: Object) -> Object:
    """A new Deployment, once it is complete."""
    cluster.create(DEPLOYMENTS, document)
    return rolled_out(cluster)


def versions(cluster: ClusterApi) -> list[str]:
    """Version of each pod's template."""
    return sorted(_version(pod) for pod in cluster.all(PODS))


def _version(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["env"][0]["value"])


def sets(cluster: ClusterApi) -> dict[str, Object]:
    """Every ReplicaSet by its revision."""
    return {resource["metadata"]["annotations"][REVISION]: resource for resource in cluster.all(REPLICA_SETS)}


def test_a_deployment_gets_its_pods(cluster: ClusterApi, kubelet: Kubelet) -> None:
    made = cluster.create(DEPLOYMENTS, web(2))

    complete = rolled_out(cluster)
    status = complete["status"]

    assert complete["metadata"]["annotations"] == {REVISION: "1"}
    replica_set = sets(cluster)["1"]
    owner = controller_of(replica_set)
    assert owner is not None
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Deployment", "web", made["metadata"]["uid"])
    assert replica_set["spec"]["replicas"] == 2
    counts = {"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    assert replica_set["status"] == {"observedGeneration": 1, **counts}

    first, second = cluster.all(PODS)
    for pod in (first, second):
        owner = controller_of(pod)
        assert owner is not None
        assert (owner["kind"], owner["name"], owner["uid"]) == (
            "ReplicaSet",
            replica_set["metadata"]["name"],
            replica_set["metadata"]["uid"],
        )
        labels = pod["metadata"]["labels"]
        assert pod["metadata"]["name"].startswith(f"web-{labels['pod-template-hash']}-")
        assert labels["app"] == "web"
        assert pod["spec"]["nodeName"] == "local"
    assert first["metadata"]["labels"] == second["metadata"]["labels"]
    fields = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    assert [status.get(count) for count in fields] == [2, 2, 2, 2, None]
    assert [(status_condition["type"], status_condition["status"]) for status_condition in status["conditions"]] == [
        ("Available", "True"),
        ("Progressing", "True"),
    ]


def test_a_deleted_pod_is_replaced(cluster: ClusterApi, kubelet: Kubelet) -> None:
    deployed(cluster, web())
    (pod,) = cluster.all(PODS)
    name = pod["metadata"]["name"]

    cluster.delete(PODS, name)

    cluster.once(
        PODS,
        lambda pods: [successor for successor in pods if successor["metadata"]["name"] != name and is_ready(successor)],
    )


def test_scaling_takes_pods_away(cluster: ClusterApi, kubelet: Kubelet) -> None:
    deployed(cluster, web(3))

    cluster.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})

    assert rolled_out(cluster)["status"]["replicas"] == 1
    assert len(cluster.all(PODS)) == 1


def test_a_roll_out_starts_the_new_pod_before_it_ends_the_old_one(cluster: ClusterApi, kubelet: Kubelet) -> None:
    deployed(cluster, web())
    old = kubelet.tree("web").resolve()
    counts: list[int] = []

    def replaced(pods: list[Object]) -> bool:
        ready = [_version(pod) for pod in pods if is_ready(pod)]
        counts.append(len(ready))
        return ready == ["2"] and len(pods) == 1

    cluster.merge(DEPLOYMENTS, "web", web(version="2"))
    cluster.once(PODS, replaced)

    assert min(counts) >= 1, "one pod was ready all the time"
    rolled_out(cluster)
    assert kubelet.tree("web").resolve() != old, "the workload's name leads to its newest pod"


def test_a_new_template_gets_a_replica_set_and_the_next_revision(cluster: ClusterApi, kubelet: Kubelet) -> None:
    deployed(cluster, web())

    cluster.merge(DEPLOYMENTS, "web", web(version="2"))
    second = rolled_out(cluster)

    assert second["metadata"]["annotations"][REVISION] == "2"
    found = sets(cluster)
    assert {revision: replica_set["spec"]["replicas"] for revision, replica_set in found.items()} == {"1": 0, "2": 1}
    assert found["1"]["status"].get("replicas", 0) == 0

    cluster.merge(DEPLOYMENTS, "web", web())
    third = rolled_out(cluster)

    assert third["metadata"]["annotations"][REVISION] == "3"
    again = sets(cluster)
    assert {revision: replica_set["spec"]["replicas"] for revision, replica_set in again.items()} == {"2": 0, "3": 1}
    assert again["3"]["metadata"]["uid"] == found["1"]["metadata"]["uid"], "an earlier template has its set already"


def test_a_pod_of_a_kubelet_without_replica_sets_is_replaced(cluster: ClusterApi, kubelet: Kubelet) -> None:
    made = deployed(cluster, web())
    (pod,) = cluster.all(PODS)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": made["metadata"]["uid"]}
    metadata = {**pod["metadata"], "name": "web-earlier-12345", "ownerReferences": [{**owner, "controller": True}]}

    cluster.create(PODS, {**pod, "metadata": metadata})

    cluster.once(PODS, lambda pods: [kept["metadata"]["uid"] for kept in pods] == [pod["metadata"]["uid"]])


def test_recreate_ends_the_old_pod_first(cluster: ClusterApi, kubelet: Kubelet) -> None:
    deployed(cluster, web(strategy="Recreate"))
    counts: list[int] = []

    def replaced(pods: list[Object]) -> bool:
        counts.append(len(pods))
        return [_version(pod) for pod in pods if is_ready(pod)] == ["2"]

    cluster.merge(DEPLOYMENTS, "web", web(version="2", strategy="Recreate"))
    cluster.once(PODS, replaced)

    assert max(counts) == 1


def test_a_roll_out_to_a_pod_that_can_not_start_leaves_the_old_one_at_work(
    cluster: ClusterApi, kubelet: Kubelet
) -> None:
    deployed(cluster, web())
    (process,) = kubelet.processes()

    cluster.merge(DEPLOYMENTS, "web", web(version="2", volumes=[csi_volume("none")]))
    broken = cluster.once(PODS, lambda pods: [pod for pod in pods if _version(pod) == "2"])[0]
    cluster.event(broken["metadata"]["name"], "FailedMount")

    assert kubelet.processes() == [process]
    assert versions(cluster) == ["1", "2"]
    (status,) = cluster.once(DEPLOYMENTS, lambda items: [item["status"] for item in items if is_observed(item)])
    assert (status["replicas"], status["readyReplicas"]) == (2, 1)
    reasons = {
        status_condition["type"]: (status_condition["status"], status_condition["reason"])
        for status_condition in status["conditions"]
    }
    assert reasons == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }


def test_a_deployment_whose_pod_is_not_ready_is_not_available(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(DEPLOYMENTS, web(volumes=[csi_volume("none")]))

    def reported(items: list[Object]) -> Object | None:
        return next((item["status"] for item in items if item.get("status", {}).get("replicas") == 1), None)

    status = cluster.once(DEPLOYMENTS, reported)

    assert (status.get("readyReplicas", 0), status["unavailableReplicas"]) == (0, 1)
    assert condition({"status": status}, "Available")["reason"] == "MinimumReplicasUnavailable"


def test_a_deleted_deployment_leaves_nothing(cluster: ClusterApi, kubelet: Kubelet) -> None:
    deployed(cluster, web(2))
    processes = kubelet.processes()
    assert len(processes) == 2

    cluster.delete(DEPLOYMENTS, "web")

    assert all(ended(process) for process in processes)
    cluster.once(PODS, lambda pods: not pods)
    cluster.once(REPLICA_SETS, lambda found: not found)
    kubelet.stop()
    assert not kubelet.tree("web").is_symlink()


def test_pods_end_with_their_deployment_where_the_api_collects_no_garbage(
    cluster: ClusterApi, kubelet: Kubelet
) -> None:
    deployed(cluster, web())
    (process,) = kubelet.processes()

    cluster.delete(DEPLOYMENTS, "web", propagationPolicy="Orphan")

    cluster.once(PODS, lambda pods: not pods)
    cluster.once(REPLICA_SETS, lambda found: not found)
    assert ended(process)


def test_a_kubelet_that_starts_again_runs_the_deployments_it_left_unready(
    cluster: ClusterApi, kubelet: Kubelet
) -> None:
    deployed(cluster, web())
    (before,) = cluster.all(PODS)

    kubelet.stop()
    stopped = cluster.get(DEPLOYMENTS, "web")["status"]
    with running(kubelet.environment):
        rolled_out(cluster)
        (after,) = cluster.all(PODS)

    assert (stopped.get("readyReplicas", 0), stopped["unavailableReplicas"]) == (0, 1)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["podIP"] == before["status"]["podIP"], "a pod keeps its address"
