"""The arithmetic of a roll-out, for every mixture of old, new, ready and unready pods."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.kubelet import deployments
from localcloud.kubelet.main import allocate
from localcloud.kubelet.selection import HASH_LABEL

Object = dict[str, Any]
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def deployment(replicas: int, strategy: Object | None = None) -> Object:
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


def is_ready(pod: Object) -> bool:
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
    wanted = deployment(
        replicas, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    )
    pods = pods_of(wanted, old=old, new=new)
    for pod in pods:
        pod["status"] = READY if chance.random() < 0.7 else {}
    highest = max(len(pods), replicas + _number(surge, replicas, up=True))
    for turn in range(100):
        step = deployments.plan(wanted, *split(wanted, pods))
        if not step.create and not step.delete and all(map(is_ready, pods)):
            break
        available = sum(map(is_ready, pods))
        pods = [pod for pod in pods if pod not in step.delete]
        still_available = sum(map(is_ready, pods))
        assert still_available >= min(available, _least_available(replicas, surge, unavailable))
        made = pods_of(wanted, old=0, new=step.create)
        for place, pod in enumerate(made):
            pod["metadata"]["name"] += f"-{turn}-{place}"
        pods += made
        assert len(pods) <= highest
        if unready := [pod for pod in pods if not is_ready(pod)]:
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
    wanted = deployment(2, {"type": "Recreate"})
    pods = pods_of(wanted, old=2, new=0)

    assert deployments.plan(wanted, *split(wanted, pods)) == deployments.RolloutStep(0, pods)
    assert deployments.plan(wanted, [], []) == deployments.RolloutStep(2, [])


def test_pods_that_are_not_ready_go_first_when_there_are_too_many() -> None:
    wanted = deployment(1)
    pods = pods_of(wanted, old=0, new=2)
    pods[0]["status"] = READY

    assert deployments.plan(wanted, *split(wanted, pods)) == deployments.RolloutStep(0, [pods[1]])


def test_a_pod_is_its_template_on_a_node_and_owned_by_the_replica_set() -> None:
    pod = deployments.pod_of(replica_set(deployment(1)), "xxxxx", "local")

    hash_ = deployments.template_hash(deployment(1))
    assert pod["metadata"]["name"] == f"web-{hash_}-xxxxx"
    assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": hash_}
    assert pod["metadata"]["annotations"] == {"a": "b"}
    assert pod["spec"] == {"containers": [], "nodeName": "local"}
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["controller"], owner["kind"], owner["name"]) == (True, "ReplicaSet", f"web-{hash_}")


def test_a_replica_set_selects_its_pods_alone_and_has_the_next_revision() -> None:
    wanted = deployment(2)
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

    wanted = deployment(1)
    wanted["spec"]["revisionHistoryLimit"] = 1
    busy, first, second = old(1, 1), old(2, 0), old(3, 0)

    assert deployments.expired(wanted, [second, busy, first]) == [first, second]
    assert deployments.expired(wanted, [second, first]) == [first]
    assert deployments.expired(wanted, [first]) == []


def test_a_condition_keeps_the_time_since_when_it_holds() -> None:
    wanted = deployment(1)
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
    wanted = deployment(replicas)
    pods = [{**pod, "status": READY} for pod in pods_of(wanted, old=0, new=replicas)]

    assert deployments.plan(wanted, *split(wanted, pods)) == deployments.RolloutStep(0, [])
