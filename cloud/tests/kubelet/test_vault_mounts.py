"""A vault's secrets in a pod: mounted, reported, kept up to date; and the events of a pod that cannot have them."""

from __future__ import annotations

import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.core.clouds import LocalEnvironment
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import Store
from localcloud.kubelet.client import POD_STATUSES, PODS, SECRET_PROVIDER_CLASSES
from tests.kubelet_world import (
    NAMESPACE,
    QUICK,
    Azure,
    ClusterApi,
    Kubelet,
    Object,
    csi_volume,
    pod,
    provider_class,
    running,
)

STATUS = f"web-{NAMESPACE}-cpo"


@pytest.fixture
def user(node_azure: Azure) -> str:
    """Client id of an identity that is attached and may read."""
    return node_azure.identity().app_id


@pytest.fixture
def version(node_azure: Azure, cluster: ClusterApi, user: str) -> str:
    """Version of the one secret of the class `cpo`."""
    cluster.create(SECRET_PROVIDER_CLASSES, provider_class("cpo", user, {"objectName": "cpo-hc1-json"}))
    return node_azure.secret("cpo-hc1-json", "first")


def credential(kubelet: Kubelet) -> Path:
    return kubelet.tree("web") / "mnt/credential/cpo-hc1-json"


def test_a_container_starts_with_its_secret_in_a_closed_directory(
    cluster: ClusterApi, version: str, kubelet: Kubelet
) -> None:
    cluster.create(PODS, pod("web", csi_volume("cpo"), command=["cat", "/mnt/credential/cpo-hc1-json"]))

    assert cluster.finished("web")["status"]["phase"] == "Succeeded"
    assert kubelet.log("web") == "first"
    assert stat.S_IMODE(credential(kubelet).parent.stat().st_mode) == 0o700
    assert credential(kubelet).readlink() == Path("..data/cpo-hc1-json")


def test_the_cluster_is_told_which_versions_are_mounted(cluster: ClusterApi, version: str, kubelet: Kubelet) -> None:
    made = cluster.run(pod("web", csi_volume("cpo")))

    found = cluster.get(POD_STATUSES, STATUS)

    assert found["status"] == {
        "podName": "web",
        "secretProviderClassName": "cpo",
        "mounted": True,
        "targetPath": str(credential(kubelet).parent).replace("/web/", "/.web/"),
        "objects": [{"id": "secret/cpo-hc1-json", "version": version}],
    }
    assert found["metadata"]["labels"] == {"internal.secrets-store.csi.k8s.io/node-name": "local"}
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", "web", made["metadata"]["uid"])


def test_a_new_version_is_swapped_in_while_the_container_runs(
    node_azure: Azure, cluster: ClusterApi, version: str, kubelet: Kubelet
) -> None:
    cluster.run(pod("web", csi_volume("cpo")))
    (process,) = kubelet.processes()
    directory = (credential(kubelet).parent / "..data").readlink()

    newer = node_azure.secret("cpo-hc1-json", "second")
    cluster.event("web", "MountRotationComplete", "successfully rotated mounted contents of volume credential")

    assert credential(kubelet).read_text() == "second"
    assert (credential(kubelet).parent / "..data").readlink() != directory
    assert kubelet.processes() == [process]
    assert cluster.get(POD_STATUSES, STATUS)["status"]["objects"] == [{"id": "secret/cpo-hc1-json", "version": newer}]


def test_a_write_to_the_local_cloud_ends_the_wait_for_the_next_rotation(
    node_azure: Azure, cluster: ClusterApi, version: str, environment: LocalEnvironment
) -> None:
    state = StateDirectory(Path(environment.state_dir))
    state.create()
    slow = replace(QUICK, rotation=600, change=0.05)
    with closing(state.open_store()) as store, running(environment, slow) as kubelet:
        cluster.run(pod("web", csi_volume("cpo")))
        node_azure.secret("cpo-hc1-json", "second")

        store.put("anything", "else", {})
        cluster.event("web", "MountRotationComplete")

        assert credential(kubelet).read_text() == "second"


def test_a_failed_rotation_keeps_the_old_files_and_the_pod_ready(
    node_azure: Azure, cluster: ClusterApi, version: str, kubelet: Kubelet
) -> None:
    cluster.run(pod("web", csi_volume("cpo")))

    assert node_azure.world.vault("DELETE", "/secrets/cpo-hc1-json").is_success
    failed = cluster.event("web", "MountRotationFailed")

    assert failed["type"] == "Warning"
    assert "ERROR CODE: SecretNotFound" in failed["message"]
    assert credential(kubelet).read_text() == "first"
    cluster.ready("web")


def test_a_changed_class_is_followed(
    node_azure: Azure, cluster: ClusterApi, version: str, user: str, kubelet: Kubelet
) -> None:
    cluster.run(pod("web", csi_volume("cpo")))
    node_azure.secret("other", "v")

    cluster.merge(SECRET_PROVIDER_CLASSES, "cpo", provider_class("cpo", user, {"objectName": "other"}))
    cluster.event("web", "MountRotationComplete")

    assert sorted(path.name for path in credential(kubelet).parent.iterdir() if path.name[0] != ".") == ["other"]


def is_waiting(web: Object) -> bool:
    """Whether the pod is held up before its containers, with all that the API shows of it."""
    status = web.get("status", {})
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", [])}
    return (
        status.get("phase") == "Pending"
        and conditions == {"PodScheduled": "True", "Initialized": "True", "ContainersReady": "False", "Ready": "False"}
        and [container_status["state"] for container_status in status["containerStatuses"]]
        == [{"waiting": {"reason": "ContainerCreating"}}]
    )


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("attached", "ManagedIdentityCredential authentication failed. the requested identity isn't assigned to this"),
        ("role", "RESPONSE 403: 403 Forbidden\nERROR CODE: Forbidden"),
    ],
)
def test_an_identity_that_cannot_read_holds_the_pod_up_until_it_can(
    node_azure: Azure, cluster: ClusterApi, kubelet: Kubelet, lacking: str, message: str
) -> None:
    node_azure.secret("cpo-hc1-json", "first")
    user = node_azure.identity(attached=lacking != "attached", role=lacking != "role")
    cluster.create(SECRET_PROVIDER_CLASSES, provider_class("cpo", user.app_id, {"objectName": "cpo-hc1-json"}))
    cluster.create(PODS, pod("web", csi_volume("cpo")))

    failed = cluster.event("web", "FailedMount", message)
    cluster.once_pod("web", is_waiting)

    assert failed["type"] == "Warning"
    assert failed["source"] == {"component": "kubelet", "host": "local"}
    assert failed["message"].startswith(
        'MountVolume.SetUp failed for volume "credential" : rpc error: code = Unknown desc = failed to mount secrets '
        f"store objects for pod {NAMESPACE}/web, err: rpc error: code = Unknown desc = failed to mount objects, error: "
        "failed to get objectType:secret, objectName:cpo-hc1-json, objectVersion:: "
    )
    assert kubelet.processes() == []
    if lacking == "role":
        node_azure.grant(user)
    else:
        node_azure.world.attach(user)
    cluster.ready("web")


def test_a_repeated_failure_is_one_event_that_is_counted(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(PODS, pod("web", csi_volume("cpo")))

    first = cluster.event("web", "FailedMount")
    again = cluster.once_event("web", lambda event: event["count"] >= 3)

    assert again["metadata"]["name"] == first["metadata"]["name"]


def test_a_pod_waits_for_its_class(node_azure: Azure, cluster: ClusterApi, user: str, kubelet: Kubelet) -> None:
    node_azure.secret("cpo-hc1-json", "first")
    cluster.create(PODS, pod("web", csi_volume("cpo")))
    cluster.event(
        "web",
        "FailedMount",
        f"failed to get secretproviderclass {NAMESPACE}/cpo, error: SecretProviderClass.secrets-store.csi.x-k8s.io "
        '"cpo" not found',
    )

    cluster.create(SECRET_PROVIDER_CLASSES, provider_class("cpo", user, {"objectName": "cpo-hc1-json"}))

    cluster.ready("web")


@pytest.mark.parametrize(
    ("csi", "message"),
    [
        ({"driver": "disk.csi.azure.com"}, "driver name disk.csi.azure.com not found in the list of registered CSI"),
        ({"readOnly": False}, "rpc error: code = InvalidArgument desc = Readonly is not true in request"),
        ({"volumeAttributes": {}}, "secretProviderClass is not set"),
    ],
)
def test_a_volume_that_the_driver_does_not_take_holds_the_pod_up(
    cluster: ClusterApi, version: str, kubelet: Kubelet, csi: dict[str, Any], message: str
) -> None:
    volume = csi_volume("cpo")

    cluster.create(PODS, pod("web", {**volume, "csi": {**volume["csi"], **csi}}))

    cluster.event("web", "FailedMount", message)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"provider": "vault"}, 'error connecting to provider "vault": provider not found: provider "vault"'),
        ({"provider": ""}, f"provider not set in {NAMESPACE}/cpo"),
        ({"parameters": None}, f"parameters not set in {NAMESPACE}/cpo"),
        ({"parameters": {"objects": "array: []"}}, "missing object versions"),
    ],
)
def test_a_class_that_the_driver_does_not_take_holds_the_pod_up(
    cluster: ClusterApi, version: str, kubelet: Kubelet, spec: dict[str, Any], message: str
) -> None:
    cluster.merge(SECRET_PROVIDER_CLASSES, "cpo", {"spec": spec})

    cluster.create(PODS, pod("web", csi_volume("cpo")))

    cluster.event("web", "FailedMount", message)


def test_a_deleted_pod_takes_its_files_and_its_status_along(
    cluster: ClusterApi, version: str, kubelet: Kubelet
) -> None:
    cluster.run(pod("web", csi_volume("cpo")))
    tree = kubelet.tree("web").resolve()

    cluster.delete(PODS, "web")
    cluster.once(POD_STATUSES, lambda statuses: not statuses)
    kubelet.stop()

    assert not tree.exists()
    assert list(Path(kubelet.environment.mounts_dir).iterdir()) == []


def test_a_kubelet_that_stops_takes_every_mount_away_and_says_so(
    cluster: ClusterApi, version: str, kubelet: Kubelet
) -> None:
    cluster.run(pod("web", csi_volume("cpo")))

    kubelet.stop()

    assert list(Path(kubelet.environment.mounts_dir).iterdir()) == []
    assert cluster.all(POD_STATUSES) == []


def test_no_secret_is_in_any_object_of_the_cluster(
    node_azure: Azure, cluster: ClusterApi, version: str, kubelet: Kubelet, kubernetes_store: Store
) -> None:
    cluster.run(pod("web", csi_volume("cpo")))
    node_azure.secret("cpo-hc1-json", "marker-7c1e")
    cluster.event("web", "MountRotationComplete")

    assert credential(kubelet).read_text() == "marker-7c1e"
    assert "marker-7c1e" not in str(kubernetes_store.items("kubernetes"))
