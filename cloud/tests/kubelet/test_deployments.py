"""Deployments: their pods, roll-outs, status, and what a deletion takes along."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.kubelet import deployments
from localcloud.kubelet.client import DEPLOYMENTS, PODS, REPLICA_SETS
from localcloud.kubelet.deployments import REVISION
from localcloud.kubelet.main import allocate
from localcloud.kubelet.selection import HASH_LABEL, condition, controller_of, is_ready
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


READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def bare_deployment(replicas: int, strategy: Object | None = None) -> Object:
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": strategy or {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}, "spec": {"containers": []}},
        },
    }


def pods_of(wanted: Object, *, old: int, new: int) -> list[Object]:
    """Unready pods of another template and of the present one."""
    earlier = {**wanted, "spec": {**wanted["spec"], "template": {"spec": {"containers": [{"name": "earlier"}]}}}}
    kinds = [earlier] * old + [wanted] * new
    return [deployments.pod_of(replica_set(kind), f"{place:05}", "local") for place, kind in enumerate(kinds)]


def replica_set(wanted: Object, *others: Object, replicas: int = 1) -> Object:
    """As the API server has it."""
    document = deployments.replica_set_of(wanted, others, replicas)
    return {**document, "metadata": {**document["metadata"], "uid": document["metadata"]["name"], "generation": 1}}


def split(wanted: Object, pods: list[Object]) -> tuple[list[Object], list[Object]]:
    """The pods of the present template, and the others."""
    hash_ = deployments.template_hash(wanted)
    current = [pod for pod in pods if pod["metadata"]["labels"][HASH_LABEL] == hash_]
    return current, [pod for pod in pods if pod not in current]


def has_become_ready(pod: Object) -> bool:
    return pod.get("status") == READY


shares = st.one_of(st.integers(0, 3), st.sampled_from(("0%", "25%", "50%", "100%")))


@given(
    replicas=st.integers(0, 6),
    old=st.integers(0, 6),
    new=st.integers(0, 3),
    surge=shares,
    unavailable=shares,
    chance=st.randoms(use_true_random=False),
)
def test_a_rolling_update_keeps_surge_and_availability_within_limits(
    replicas: int, old: int, new: int, surge: int | str, unavailable: int | str, chance: Random
) -> None:
    wanted = bare_deployment(
        replicas, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    )
    pods = pods_of(wanted, old=old, new=new)
    for pod in pods:
        pod["status"] = READY if chance.random() < 0.7 else {}
    highest = max(len(pods), replicas + _number(surge, replicas, up=True))
    for turn in range(100):
        step = deployments.plan(wanted, *split(wanted, pods))
        if not step.create and not step.delete and all(map(has_become_ready, pods)):
            break
        available = sum(map(has_become_ready, pods))
        pods = [pod for pod in pods if pod not in step.delete]
        still_available = sum(map(has_become_ready, pods))
        assert still_available >= min(available, _least_available(replicas, surge, unavailable))
        made = pods_of(wanted, old=0, new=step.create)
        for place, pod in enumerate(made):
            pod["metadata"]["name"] += f"-{turn}-{place}"
        pods += made
        assert len(pods) <= highest
        if unready := [pod for pod in pods if not has_become_ready(pod)]:
            chance.choice(unready)["status"] = READY
    hash_ = deployments.template_hash(wanted)
    assert [pod["metadata"]["labels"][HASH_LABEL] for pod in pods] == [hash_] * replicas


def _number(share: int | str, of: int, *, up: bool) -> int:
    if isinstance(share, int):
        return share
    exact = int(share[:-1]) * of
    return -(-exact // 100) if up else exact // 100


def _least_available(replicas: int, surge: int | str, unavailable: int | str) -> int:
    missing = _number(unavailable, replicas, up=False)
    if missing == 0 and _number(surge, replicas, up=True) == 0:
        missing = 1
    return replicas - missing


def test_recreate_creates_only_when_every_old_pod_is_gone() -> None:
    wanted = bare_deployment(2, {"type": "Recreate"})
    pods = pods_of(wanted, old=2, new=0)

    assert deployments.plan(wanted, *split(wanted, pods)) == deployments.RolloutStep(0, pods)
    assert deployments.plan(wanted, [], []) == deployments.RolloutStep(2, [])


def test_pods_that_are_not_ready_go_first_when_there_are_too_many() -> None:
    wanted = bare_deployment(1)
    pods = pods_of(wanted, old=0, new=2)
    pods[0]["status"] = READY

    assert deployments.plan(wanted, *split(wanted, pods)) == deployments.RolloutStep(0, [pods[1]])


def test_a_pod_is_its_template_on_a_node_and_owned_by_the_replica_set() -> None:
    pod = deployments.pod_of(replica_set(bare_deployment(1)), "xxxxx", "local")

    hash_ = deployments.template_hash(bare_deployment(1))
    assert pod["metadata"]["name"] == f"web-{hash_}-xxxxx"
    assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": hash_}
    assert pod["metadata"]["annotations"] == {"a": "b"}
    assert pod["spec"] == {"containers": [], "nodeName": "local"}
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["controller"], owner["kind"], owner["name"]) == (True, "ReplicaSet", f"web-{hash_}")


def test_a_replica_set_selects_its_pods_alone_and_has_the_next_revision() -> None:
    wanted = bare_deployment(2)
    wanted["metadata"]["annotations"] = {"note": "mine", deployments.REVISION: "7"}
    other = {"metadata": {"name": "web-other", "annotations": {deployments.REVISION: "7"}}}

    made = deployments.replica_set_of(wanted, [other], 2)

    labels = {"app": "web", "pod-template-hash": deployments.template_hash(wanted)}
    assert made["spec"]["selector"] == {"matchLabels": labels}
    assert made["spec"]["template"]["metadata"]["labels"] == made["metadata"]["labels"] == labels
    assert made["metadata"]["annotations"] == {"note": "mine", deployments.REVISION: "8"}
    assert made["spec"]["replicas"] == 2
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["controller"], owner["kind"], owner["uid"]) == (True, "Deployment", "u")


def test_the_oldest_replica_sets_without_pods_expire_beyond_the_limit() -> None:
    def old(revision: int, replicas: int) -> Object:
        annotations = {deployments.REVISION: str(revision)}
        return {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}

    wanted = bare_deployment(1)
    wanted["spec"]["revisionHistoryLimit"] = 1
    busy, first, second = old(1, 1), old(2, 0), old(3, 0)

    assert deployments.expired(wanted, [second, busy, first]) == [first, second]
    assert deployments.expired(wanted, [second, first]) == [first]
    assert deployments.expired(wanted, [first]) == []


def test_a_condition_keeps_the_time_since_when_it_holds() -> None:
    wanted = bare_deployment(1)
    (pod,) = pods_of(wanted, old=0, new=1)
    first = deployments.status(wanted, [pod], [], "2026-01-01T00:00:00Z")
    again = deployments.status({**wanted, "status": first}, [pod], [], "2026-01-02T00:00:00Z")
    pod["status"] = READY
    later = deployments.status({**wanted, "status": again}, [pod], [], "2026-01-03T00:00:00Z")

    assert again == first
    times = {
        condition["type"]: (condition["lastTransitionTime"], condition["lastUpdateTime"])
        for condition in later["conditions"]
    }
    assert times == {
        "Available": ("2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z"),
        "Progressing": ("2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"),
    }


@given(st.lists(st.uuids(), min_size=1, max_size=20, unique=True))
def test_pods_get_loopback_addresses_of_their_own(uids: list[object]) -> None:
    used: set[str] = set()
    for uid in uids:
        address = allocate(str(uid), used)
        assert address not in used
        assert address.startswith("127.")
        assert int(address.split(".")[1]) >= 64, "the low addresses of 127/8 are others'"
        used.add(address)


def test_an_address_that_is_taken_is_passed_over() -> None:
    first = allocate("uid", set())

    assert allocate("uid", {first}) != first
    assert allocate("uid", set()) == first


@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_a_complete_deployment_needs_no_step(replicas: int) -> None:
    wanted = bare_deployment(replicas)
    pods = [{**pod, "status": READY} for pod in pods_of(wanted, old=0, new=replicas)]

    assert deployments.plan(wanted, *split(wanted, pods)) == deployments.RolloutStep(0, [])
