"""What the kubernetes plugin makes of a program's inputs, and which of their changes replace an object."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from emulated.kubernetes import provider
from emulated.kubernetes.client import Api, Collection
from emulated.kubernetes.provider import AwaitError, Kubernetes, is_ready, wait_until_gone
from localcloud.core.clouds import LocalEnvironment
from localcloud.kubelet.client import DEPLOYMENTS, EVENTS, PODS
from localcloud.testing.kubernetes import deployment
from localcloud.testing.plugins import checked, create, update, urn
from plugin import UNKNOWN, InitializationError, PluginError, PropertyChange, Props, Secret, unwrap
from plugin.servicer import Cancellation
from tests.emulated.conftest import Configured
from tests.kubelet_world import NAMESPACE, ClusterApi, csi_volume, running, states

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
SECRET = "kubernetes:core/v1:Secret"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
# As the real one does, only a deletion is called one of inputs.
IN_PLACE = PropertyChange("update", input=False)
REPLACES = PropertyChange("update", replace=True, input=False)


def metadata(name: str = "x", **more: Any) -> Props:
    return {"name": name, "namespace": NAMESPACE, **more}


def changes(provider: Kubernetes, token: str, old: Props, new: Props) -> dict[str, PropertyChange]:
    """The detailed diff between inputs, which name their kind as Check makes them do."""
    return dict(provider.resource(token).diff(urn(token), "id", _of_kind(token, old), {}, _of_kind(token, new)).changes)


def deletes_first(provider: Kubernetes, token: str, old: Props, new: Props) -> bool:
    """Whether a replacement deletes the old object before it creates the new one."""
    diff = provider.resource(token).diff(urn(token), "id", _of_kind(token, old), {}, _of_kind(token, new))
    assert any(change.replace for change in diff.changes.values())
    return diff.delete_before_replace


def _of_kind(token: str, inputs: Props) -> Props:
    group_version, kind = token.removeprefix("kubernetes:").split(":")
    return {"apiVersion": group_version.removeprefix("core/"), "kind": kind, **inputs}


def test_kind_and_place_are_filled_in(kubernetes: Kubernetes) -> None:
    assert checked(kubernetes, CONFIG_MAP, {"metadata": {"name": "c"}}) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": NAMESPACE},
    }
    elsewhere = checked(kubernetes, CONFIG_MAP, {"metadata": {"name": "c", "namespace": "default"}})
    assert elsewhere["metadata"]["namespace"] == "default"


def test_a_provider_without_a_namespace_uses_its_contexts(configured: Configured) -> None:
    inputs = checked(configured(namespace=""), CONFIG_MAP, {"metadata": {"name": "c"}})

    assert inputs["metadata"]["namespace"] == "default"


def test_a_cluster_wide_kind_has_no_namespace(kubernetes: Kubernetes) -> None:
    inputs = checked(kubernetes, "kubernetes:core/v1:Namespace", {"metadata": {"name": "n", "namespace": "x"}})

    assert inputs["metadata"] == {"name": "n"}


def test_a_missing_name_is_generated_once(kubernetes: Kubernetes) -> None:
    first = checked(kubernetes, CONFIG_MAP, {"data": {"a": "1"}})
    again = checked(kubernetes, CONFIG_MAP, {"data": {"a": "2"}}, first)
    other = checked(kubernetes, CONFIG_MAP, {})

    name = first["metadata"]["name"]
    assert re.fullmatch("name-[0-9a-f]{8}", name), "the resource's name and a random suffix"
    assert first["metadata"]["annotations"] == {"pulumi.com/autonamed": "true"}
    assert again["metadata"]["name"] == name
    assert other["metadata"]["name"] != name


def test_a_given_name_or_prefix_is_kept(kubernetes: Kubernetes) -> None:
    prefixed = checked(kubernetes, CONFIG_MAP, {"metadata": {"generateName": "c-"}})

    assert prefixed["metadata"] == {"generateName": "c-", "namespace": NAMESPACE}


def test_nulls_and_what_only_the_server_writes_are_dropped(kubernetes: Kubernetes) -> None:
    server = {"uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": "t", "managedFields": []}

    inputs = checked(
        kubernetes, CONFIG_MAP, {"metadata": {"name": "c", "labels": None, **server}, "data": {"a": None, "b": "1"}}
    )

    assert inputs["metadata"] == {"name": "c", "namespace": NAMESPACE}
    assert inputs["data"] == {"b": "1"}


def test_string_data_becomes_data_and_is_secret(kubernetes: Kubernetes) -> None:
    inputs = checked(
        kubernetes,
        SECRET,
        {"metadata": {"name": "s"}, "stringData": {"a": "hi", "b": "x"}, "data": {"b": "eQ==", "c": "eg=="}},
    )

    assert "stringData" not in inputs
    assert inputs["data"] == Secret({"a": "aGk=", "b": "eA==", "c": "eg=="})


def test_unknown_string_data_stays_string_data(kubernetes: Kubernetes) -> None:
    inputs = checked(kubernetes, SECRET, {"metadata": {"name": "s"}, "stringData": {"a": UNKNOWN}})

    assert inputs["stringData"] == Secret({"a": UNKNOWN})


def test_two_notations_of_one_object_are_equal(kubernetes: Kubernetes) -> None:
    text: Props = {"metadata": metadata(), "stringData": {"a": "hi"}, "type": None}
    data: Props = {"metadata": metadata(labels=None, uid="u"), "data": Secret({"a": "aGk="})}

    assert changes(kubernetes, SECRET, text, data) == {}


@pytest.mark.parametrize("field", ["name", "namespace"])
@pytest.mark.parametrize("value", ["another", UNKNOWN])
def test_another_name_or_place_is_another_object(kubernetes: Kubernetes, field: str, value: object) -> None:
    old: Props = {"metadata": metadata()}
    new: Props = {"metadata": {**metadata(), field: value}}

    assert changes(kubernetes, CONFIG_MAP, old, new) == {f"metadata.{field}": REPLACES}
    assert not deletes_first(kubernetes, CONFIG_MAP, old, new), "both can be there at once"


@pytest.mark.parametrize(
    ("token", "old", "new", "found"),
    [
        (CONFIG_MAP, {"data": {"a": "1"}}, {"data": {"a": UNKNOWN}}, {"data.a": REPLACES}),
        (CONFIG_MAP, {}, {"data": {"a": "1"}}, {"data": PropertyChange("add", replace=True, input=False)}),
        (
            "kubernetes:core/v1:Pod",
            {"spec": {"containers": [{"image": "a"}], "activeDeadlineSeconds": 1}},
            {"spec": {"containers": [{"image": "b"}], "activeDeadlineSeconds": 2}},
            {"spec.containers[0].image": REPLACES, "spec.activeDeadlineSeconds": IN_PLACE},
        ),
        (
            "kubernetes:core/v1:Pod",
            {"spec": {"containers": [{"name": "a", "image": "a"}], "nodeSelector": {"os": "linux"}}},
            {"spec": {"containers": [{"name": "b", "image": "a"}, {"name": "c", "image": "c"}]}},
            {
                "spec.containers[0].name": IN_PLACE,
                "spec.containers[1]": PropertyChange("add", replace=True, input=False),
                "spec.nodeSelector": PropertyChange("delete", replace=True),
            },
        ),
    ],
)
def test_each_kind_has_fields_that_replace_it(
    kubernetes: Kubernetes, token: str, old: Props, new: Props, found: dict[str, PropertyChange]
) -> None:
    assert changes(kubernetes, token, {"metadata": metadata(), **old}, {"metadata": metadata(), **new}) == found


def test_labels_change_in_place(kubernetes: Kubernetes) -> None:
    old, new = metadata(labels={"a": "1", "b": "2"}), metadata(labels={"a": "2", "c": "3"})

    assert changes(kubernetes, CONFIG_MAP, {"metadata": old}, {"metadata": new}) == {
        "metadata.labels.a": IN_PLACE,
        "metadata.labels.b": PropertyChange("delete"),
        "metadata.labels.c": PropertyChange("add", input=False),
    }


@pytest.mark.parametrize(
    ("token", "setting"), [(SECRET, "enableSecretMutable"), (CONFIG_MAP, "enableConfigMapMutable")]
)
def test_a_provider_setting_lets_data_change_in_place(configured: Configured, token: str, setting: str) -> None:
    old, new = ({"metadata": metadata(), "data": {"a": value}} for value in ("MQ==", "Mg=="))

    assert changes(configured(**{setting: "true"}), token, old, new) == {"data.a": IN_PLACE}
    assert changes(configured(**{setting: "false"}), token, old, new) == {"data.a": REPLACES}
    frozen = configured(**{setting: "true"})
    assert changes(frozen, token, {**old, "immutable": True}, {**new, "immutable": True}) == {"data.a": REPLACES}


def test_a_replacement_deletes_first_unless_its_name_is_generated(
    kubernetes: Kubernetes,
) -> None:
    own, generated = metadata(), metadata(annotations={"pulumi.com/autonamed": "true"})

    for place, first in ((own, True), (generated, False)):
        old, new = ({"metadata": place, "data": {"a": value}} for value in ("1", "2"))
        assert deletes_first(kubernetes, CONFIG_MAP, old, new) == first


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

    monkeypatch.setattr(provider, "interruptible", until_all_is_reported)
    monkeypatch.setattr(provider, "time", SimpleNamespace(monotonic=lambda: passed[0]))
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
    monkeypatch.setattr(provider, "interruptible", engine.run)
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
