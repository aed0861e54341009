"""`secretObjects`: Kubernetes Secrets made of mounted files, as the Secrets Store CSI driver makes them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from localcloud.kubelet.client import PODS, SECRET_PROVIDER_CLASSES, SECRETS, ApiResource
from localcloud.testing.arm import VAULT
from tests.kubelet_world import Azure, ClusterApi, Kubelet, Object, csi_volume, pod, provider_class

NAME = "made"


@pytest.fixture
def user(node_azure: Azure) -> str:
    """Client id of an identity that is attached and may read."""
    node_azure.secret("cpo-hc1-json", "first")
    return node_azure.identity().app_id


def synced(user: str, object_name: str = "alias", **changed: Any) -> Object:
    """A class whose file `alias` becomes a Secret."""
    document = provider_class("cpo", user, {"objectName": "cpo-hc1-json", "objectAlias": "alias"})
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
    node_azure: Azure, cluster: ClusterApi, user: str, kubelet: Kubelet
) -> None:
    cluster.create(SECRET_PROVIDER_CLASSES, synced(user, labels={"a": "b"}))
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
    cluster: ClusterApi, user: str, kubelet: Kubelet, changed: dict[str, Any], message: str
) -> None:
    cluster.create(SECRET_PROVIDER_CLASSES, synced(user, **changed))
    cluster.create(PODS, pod("web", csi_volume("cpo")))

    cluster.event("web", "FailedToCreateSecret", message)
    cluster.ready("web")
    assert NAME not in [resource["metadata"]["name"] for resource in cluster.all(SECRETS)]


def test_a_secret_of_others_is_left_alone(cluster: ClusterApi, user: str, kubelet: Kubelet) -> None:
    cluster.create(SECRETS, {"metadata": {"name": NAME}, "data": {"a": "Yg=="}})
    cluster.create(SECRET_PROVIDER_CLASSES, synced(user))
    cluster.run(pod("web", csi_volume("cpo")))

    assert cluster.get(SECRETS, NAME)["data"] == {"a": "Yg=="}


def test_a_certificate_becomes_a_secret_for_tls(
    node_azure: Azure, cluster: ClusterApi, user: str, kubelet: Kubelet
) -> None:
    officer = node_azure.world.principal(("Key Vault Certificates Officer", VAULT))
    policy = {"issuer": {"name": "Self"}, "x509_props": {"subject": "CN=web"}}
    node_azure.world.vault("POST", "/certificates/web/create", {"policy": policy}, caller=officer).raise_for_status()
    document = provider_class("cpo", user, {"objectName": "web"})
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


def test_a_pod_without_a_node_is_assigned_and_runs(cluster: ClusterApi, user: str, kubelet: Kubelet) -> None:
    document = pod("bare", command=["true"])
    del document["spec"]["nodeName"]
    cluster.create(PODS, document)

    assert cluster.finished("bare")["status"]["phase"] == "Succeeded"
    assert cluster.get(PODS, "bare")["spec"]["nodeName"] == "local"
    cluster.event("bare", "Scheduled", "Successfully assigned clusters-hc1/bare to local")


def test_another_scheduler_assigns_its_own_pods(cluster: ClusterApi, user: str, kubelet: Kubelet) -> None:
    theirs = pod("theirs", command=["true"])
    theirs["spec"] = {**theirs["spec"], "schedulerName": "another"}
    del theirs["spec"]["nodeName"]
    cluster.create(PODS, theirs)
    cluster.create(PODS, pod("ours", command=["true"]))
    cluster.finished("ours")

    assert "nodeName" not in cluster.get(PODS, "theirs")["spec"]
