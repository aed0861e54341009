"""A Deployment is created when its pods are ready, an object is deleted when it is gone."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from emulated.kubernetes import resource
from emulated.kubernetes.client import Api, Collection
from emulated.kubernetes.provider import Kubernetes
from emulated.kubernetes.resource import AwaitError, is_ready, wait_until_gone
from localcloud.core.clouds import LocalEnvironment
from localcloud.kubelet.client import DEPLOYMENTS, EVENTS, PODS
from localcloud.testing.kubernetes import deployment
from localcloud.testing.plugins import checked, create, update, urn
from plugin import InitializationError, PluginError, Props, unwrap
from plugin.servicer import Cancellation
from tests.kubelet_world import NAMESPACE, ClusterApi, csi_volume, running, states

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
CONFIG_MAPS = Collection("/api/v1", "configmaps", True)


def impatient(document: Props, seconds: str = "0.2") -> Props:
    """The document, to be waited for this long only."""
    document["metadata"]["annotations"] = {"pulumi.com/timeoutSeconds": seconds}
    return document


def failure(provider: Kubernetes, document: Props) -> str:
    """Why a Deployment does not become ready."""
    inputs = checked(provider, DEPLOYMENT, document)
    with pytest.raises(PluginError) as raised:
        provider.resource(DEPLOYMENT).create(urn(DEPLOYMENT), inputs, preview=False)
    return str(raised.value)


def test_a_deployment_is_created_when_its_pods_are_ready(
    kubernetes: Kubernetes, cluster_environment: LocalEnvironment
) -> None:
    with running(cluster_environment):
        _, created = create(kubernetes, DEPLOYMENT, deployment())

    assert created.state["status"]["readyReplicas"] == 1
    assert is_ready(created.state)


def test_an_updated_deployment_is_rolled_out(kubernetes: Kubernetes, cluster_environment: LocalEnvironment) -> None:
    with running(cluster_environment):
        inputs, created = create(kubernetes, DEPLOYMENT, deployment())
        newer = checked(kubernetes, DEPLOYMENT, deployment(command=["sleep", "601"]), inputs)
        state = update(kubernetes, DEPLOYMENT, inputs, created, newer)

    assert state["metadata"]["generation"] == state["status"]["observedGeneration"] == 2
    assert is_ready(state)


def test_a_deployment_that_is_not_ready_reports_its_pods_events(
    kubernetes: Kubernetes,
    cluster: ClusterApi,
    cluster_environment: LocalEnvironment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = [0.0]

    def until_all_is_reported(_: Callable[[], object]) -> None:
        cluster.once(
            DEPLOYMENTS, lambda found: [workload for workload in found if workload.get("status", {}).get("conditions")]
        )
        cluster.once(PODS, lambda found: [pod for pod in found if states(pod)])
        cluster.once(EVENTS, lambda found: [event for event in found if event["reason"] == "FailedMount"])
        passed[0] += 2

    monkeypatch.setattr(resource, "interruptible", until_all_is_reported)
    monkeypatch.setattr(resource, "time", SimpleNamespace(monotonic=lambda: passed[0]))
    with running(cluster_environment):
        message = failure(kubernetes, impatient(deployment(volumes=[csi_volume("none")]), "2"))

    assert message.startswith(
        f'resource "{urn(DEPLOYMENT)}" was successfully created, but the Kubernetes API server reported that it failed '
        "to fully initialize or become live: 'web' timed out waiting to be Ready"
    )
    assert "\n  * [MinimumReplicasUnavailable] Deployment does not have minimum availability." in message
    assert ": c: [ContainerCreating]\n" in message
    assert "[FailedMount] MountVolume.SetUp failed for volume " in message
    assert 'SecretProviderClass.secrets-store.csi.x-k8s.io "none" not found' in message


def test_waiting_for_a_deployment_without_a_kubelet_times_out(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    message = failure(kubernetes, impatient(deployment()))

    assert message.endswith("timed out waiting to be Ready\n  * Minimum number of live Pods was not attained")
    assert len(cluster.all(DEPLOYMENTS)) == 1, "what was written stays"


def test_a_deployment_whose_wait_is_interrupted_gets_into_the_state(
    kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Cancellation()
    engine.cancel()
    monkeypatch.setattr(resource, "interruptible", engine.run)
    inputs = checked(kubernetes, DEPLOYMENT, deployment())

    with pytest.raises(InitializationError, match="was successfully created, but interrupted") as raised:
        kubernetes.resource(DEPLOYMENT).create(urn(DEPLOYMENT), inputs, preview=False)

    assert raised.value.id == f"{NAMESPACE}/web"
    assert unwrap(raised.value.state["spec"])["replicas"] == 1


def test_an_annotation_skips_the_wait_for_a_deployment(kubernetes: Kubernetes) -> None:
    document = deployment()
    document["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true"}

    _, created = create(kubernetes, DEPLOYMENT, document)

    assert created.id == "clusters-hc1/web"


READY: Props = {
    "metadata": {"generation": 2},
    "spec": {"replicas": 1},
    "status": {
        "observedGeneration": 2,
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": 1,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    },
}


@pytest.mark.parametrize(
    "status",
    [
        {"observedGeneration": 1},
        {"replicas": 2},
        {"updatedReplicas": 0},
        {"readyReplicas": 0},
        {"conditions": READY["status"]["conditions"][:1]},
        {"conditions": [*READY["status"]["conditions"][:1], {"type": "Progressing", "status": "True", "reason": "x"}]},
        {"conditions": READY["status"]["conditions"][1:]},
    ],
)
def test_ready_means_that_the_newest_generation_is_complete_and_available(status: Props) -> None:
    assert is_ready(READY)
    assert not is_ready({**READY, "status": {**READY["status"], **status}})


class Lingering:
    """An API whose object is there for some looks and is then gone, or another one's."""

    def __init__(self, *found: Props | None) -> None:
        self._found = list(found)
        self.waited = 0

    def get(self, *_: object) -> Props | None:
        return self._found.pop(0) if len(self._found) > 1 else self._found[0]

    def await_change(self, *_: object) -> None:
        self.waited += 1


def object_of(uid: str, **metadata: Any) -> Props:
    return {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n", "uid": uid, **metadata}}


@pytest.mark.parametrize("after", [None, object_of("another")])
def test_a_deletion_is_complete_when_the_object_with_its_uid_is_gone(after: Props | None) -> None:
    live = object_of("u", annotations={"pulumi.com/timeoutSeconds": "5"})
    api = Lingering(live, live, after)

    wait_until_gone(cast(Api, api), CONFIG_MAPS, live)

    assert api.waited == 2


def test_the_error_for_a_remaining_object_names_its_finalizers() -> None:
    held = object_of("u", annotations={"pulumi.com/timeoutSeconds": "0"}, finalizers=["example.com/hold"])

    with pytest.raises(AwaitError) as raised:
        wait_until_gone(cast(Api, Lingering(held)), CONFIG_MAPS, held)

    assert raised.value.reasons == ["finalizers ['example.com/hold'] hold it"]
