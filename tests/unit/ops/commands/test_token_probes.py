"""The pods with which the local cloud plays a hosted control plane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE
from localcloud.testing.kubernetes import HOSTED_TOKENS_DRIVER
from localcloud.testing.running import StateDirectory
from ops.commands.up import deployments
from ops.stack import local_cloud
from ops.stack.environment import STATE_DIRECTORY_VARIABLE
from tests.unit.identity.settings.world import configuration, hosted_cluster, load

SUBJECTS = [subject.subject for row in CONTROL_PLANE if row.workload for subject in row.workload.subjects]
FIELDS = [row.field for row in CONTROL_PLANE if row.workload]
CLIENT = "6f2c1e7a-0000-4000-8000-00000000aaaa"
KEY = {"vaultSecretName": "hc2-key"}


def outputs(*fields: str, **changes: Any) -> Any:
    """A stack's with the self-managed cluster `hc2`, which has these identities."""
    cluster = {"namespace": "clusters", "dataPlane": dict.fromkeys(fields, CLIENT), **changes}
    return {"clusterSide": "hypershift", "keyVaultName": "kv-identity", "hostedClusters": {"hc2": cluster}}


def deployed(described: Any, **changes: Any) -> dict[str, Any]:
    """Pods by namespace and Deployment."""
    own = {"authentication": "workload-identities", "topology": "Public", "serviceAccountSigningKey": KEY}
    cluster = {name: value for name, value in {**hosted_cluster("hc2", **own), **changes}.items() if value is not None}
    settings = load(configuration(clusterSide="hypershift", hostedClusters=[cluster]))
    probes, documents = deployments(settings, described)
    namespaces = {document["metadata"]["name"] for document in documents if document["kind"] == "Namespace"}
    pods = {
        f"{document['metadata']['namespace']}/{document['metadata']['name']}": document["spec"]["template"]["spec"]
        for document in documents
        if document["kind"] == "Deployment"
    }
    assert {probe.cluster for probe in probes} == ({"hc2"} if pods else set())
    assert namespaces == {name.partition("/")[0] for name in pods}
    return pods


def test_each_service_account_has_a_probe_with_its_token_where_the_real_pod_has_it() -> None:
    volumes = [pod["volumes"][0]["csi"] for pod in deployed(outputs(*FIELDS)).values()]
    assert {volume["driver"] for volume in volumes} == {HOSTED_TOKENS_DRIVER}
    assert sorted(volume["volumeAttributes"]["subject"] for volume in volumes) == sorted(SUBJECTS)
    [(name, pod)] = deployed(outputs("nodePoolManagement")).items()
    [container] = pod["containers"]
    assert name == "clusters-hc2/probe-node-pool-mgmt"
    assert container["args"][1] == "token:/var/run/secrets/openshift/serviceaccount/token"
    assert container["volumeMounts"][0]["mountPath"] == "/var/run/secrets/openshift/serviceaccount"
    assert {variable["name"]: variable.get("value") for variable in container["env"]} == {
        "POD_IP": None,
        "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.com/",
        "AZURE_TENANT_ID": "11111111-1111-4111-8111-111111111111",
        "AZURE_CLIENT_ID": CLIENT,
    }
    assert pod["volumes"][0]["csi"]["volumeAttributes"] == {
        "vaultName": "kv-identity",
        "secretName": "hc2-key",
        "issuer": "https://hc2.blob.core.windows.net/hc2",
        "subject": "system:serviceaccount:kube-system:capi-provider",
        "audience": "openshift",
        "path": "token",
    }


@pytest.mark.parametrize(
    "changes",
    [{"serviceAccountSigningKey": None}, {"authentication": "managed-identities", "topology": None}],
    ids=["no signing key", "certificates"],
)
def test_a_cluster_without_tokens_of_the_stack_has_no_probes(changes: dict[str, Any]) -> None:
    assert deployed(outputs(*FIELDS), **changes) == {}


def test_a_stack_without_probes_asks_the_local_cloud_only_if_it_had_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setenv(STATE_DIRECTORY_VARIABLE, str(tmp_path))
    monkeypatch.setattr(local_cloud, "do", lambda *arguments, **_: asked.append(arguments))

    local_cloud.play("local", [], output=2)
    assert asked == []

    StateDirectory(tmp_path).pods("local").parent.mkdir()
    StateDirectory(tmp_path).pods("local").write_text("[]")
    local_cloud.play("local", [], output=2)
    assert asked == [("pods", "local")]
