"""A vault's secrets in a pod: mounted, reported, kept up to date, synced to Secrets; and why a pod cannot have them."""

from __future__ import annotations

import base64
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from localcloud.core.clouds import LocalEnvironment
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import Store
from localcloud.kubelet.client import POD_STATUSES, PODS, SECRET_PROVIDER_CLASSES, SECRETS, ApiResource
from localcloud.testing.arm import VAULT
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


NAME = "made"


@pytest.fixture
def alias_user(node_azure: Azure) -> str:
    """Client id of an identity that is attached and may read."""
    node_azure.secret("cpo-hc1-json", "first")
    return node_azure.identity().app_id


def synced(alias_user: str, object_name: str = "alias", **changed: Any) -> Object:
    """A class whose file `alias` becomes a Secret."""
    document = provider_class("cpo", alias_user, {"objectName": "cpo-hc1-json", "objectAlias": "alias"})
    entry = {"secretName": NAME, "type": "Opaque", "data": [{"objectName": object_name, "key": "credentials"}]}
    document["spec"]["secretObjects"] = [{**entry, **changed}]
    return document


def made(cluster: ClusterApi, content: bytes) -> Object:
    """The Secret, as soon as it has this content."""

    def has(secrets: list[Object]) -> Object | None:
        wanted = base64.b64encode(content).decode()
        found = (secret for secret in secrets if secret["metadata"]["name"] == NAME)
        return next((secret for secret in found if wanted in secret["data"].values()), None)

    return cluster.once(SECRETS, has)


def until_gone(cluster: ClusterApi, resource: ApiResource, name: str) -> None:
    """Wait until an object is not there."""

    def gone(objects: list[Object]) -> bool:
        return all(obj["metadata"]["name"] != name for obj in objects)

    cluster.once(resource, gone)


def test_the_secret_follows_the_vault_and_goes_with_the_last_pod(
    node_azure: Azure, cluster: ClusterApi, alias_user: str, kubelet: Kubelet
) -> None:
    cluster.create(SECRET_PROVIDER_CLASSES, synced(alias_user, labels={"a": "b"}))
    first = cluster.create(PODS, pod("web", csi_volume("cpo")))
    secret = made(cluster, b"first")
    cluster.run(pod("other", csi_volume("cpo")))
    node_azure.secret("cpo-hc1-json", "second")
    made(cluster, b"second")

    assert secret["type"] == "Opaque"
    assert secret["metadata"]["labels"] == {"a": "b", "secrets-store.csi.k8s.io/managed": "true"}
    [owner] = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", first["metadata"]["uid"])
    for name in ("web", "other"):
        assert NAME in [resource["metadata"]["name"] for resource in cluster.all(SECRETS)]
        cluster.delete(PODS, name)
        until_gone(cluster, PODS, name)
    until_gone(cluster, SECRETS, NAME)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"object_name": "cpo-hc1-json"},
            "for secret made, err: file matching objectName cpo-hc1-json not found in the pod",
        ),
        ({"type": ""}, "failed to validate secret object in spc clusters-hc1/cpo, err: secret type is empty"),
        ({"data": []}, "err: data is empty"),
    ],
    ids=["alias", "type", "data"],
)
def test_what_cannot_be_made_is_an_event_and_the_pod_runs(
    cluster: ClusterApi, alias_user: str, kubelet: Kubelet, changed: dict[str, Any], message: str
) -> None:
    cluster.create(SECRET_PROVIDER_CLASSES, synced(alias_user, **changed))
    cluster.create(PODS, pod("web", csi_volume("cpo")))

    cluster.event("web", "FailedToCreateSecret", message)
    cluster.ready("web")
    assert NAME not in [resource["metadata"]["name"] for resource in cluster.all(SECRETS)]


def test_a_secret_of_others_is_left_alone(cluster: ClusterApi, alias_user: str, kubelet: Kubelet) -> None:
    cluster.create(SECRETS, {"metadata": {"name": NAME}, "data": {"a": "Yg=="}})
    cluster.create(SECRET_PROVIDER_CLASSES, synced(alias_user))
    cluster.run(pod("web", csi_volume("cpo")))

    assert cluster.get(SECRETS, NAME)["data"] == {"a": "Yg=="}


def test_a_certificate_becomes_a_secret_for_tls(
    node_azure: Azure, cluster: ClusterApi, alias_user: str, kubelet: Kubelet
) -> None:
    officer = node_azure.world.principal(("Key Vault Certificates Officer", VAULT))
    policy = {"issuer": {"name": "Self"}, "x509_props": {"subject": "CN=web"}}
    node_azure.world.vault("POST", "/certificates/web/create", {"policy": policy}, caller=officer).raise_for_status()
    document = provider_class("cpo", alias_user, {"objectName": "web"})
    keys = [{"objectName": "web", "key": key} for key in ("tls.crt", "tls.key")]
    document["spec"]["secretObjects"] = [{"secretName": NAME, "type": "kubernetes.io/tls", "data": keys}]
    cluster.create(SECRET_PROVIDER_CLASSES, document)
    cluster.create(PODS, pod("web", csi_volume("cpo")))

    secret = cluster.once(
        SECRETS, lambda secrets: next((listed for listed in secrets if listed["metadata"]["name"] == NAME), None)
    )

    assert secret["type"] == "kubernetes.io/tls"
    data = {key: base64.b64decode(value) for key, value in secret["data"].items()}
    assert data["tls.crt"].startswith(b"-----BEGIN CERTIFICATE-----")
    assert data["tls.key"].startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    assert load_pem_private_key(data["tls.key"], None)


def test_a_pod_without_a_node_is_assigned_and_runs(cluster: ClusterApi, alias_user: str, kubelet: Kubelet) -> None:
    document = pod("bare", command=["true"])
    del document["spec"]["nodeName"]
    cluster.create(PODS, document)

    assert cluster.finished("bare")["status"]["phase"] == "Succeeded"
    assert cluster.get(PODS, "bare")["spec"]["nodeName"] == "local"
    cluster.event("bare", "Scheduled", "Successfully assigned clusters-hc1/bare to local")


def test_another_scheduler_assigns_its_own_pods(cluster: ClusterApi, alias_user: str, kubelet: Kubelet) -> None:
    theirs = pod("theirs", command=["true"])
    theirs["spec"] = {**theirs["spec"], "schedulerName": "another"}
    del theirs["spec"]["nodeName"]
    cluster.create(PODS, theirs)
    cluster.create(PODS, pod("ours", command=["true"]))
    cluster.finished("ours")

    assert "nodeName" not in cluster.get(PODS, "theirs")["spec"]
