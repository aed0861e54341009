"""HyperShift has a control plane in the stack's namespace: nothing deletes it, and the switch hands it over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from localcloud.testing.hosted_clusters import hosted_cluster
from tests.apiserver.hosted_control_plane import GROUP, NAMESPACE, control_plane
from tests.harness import LocalStack

STORE = "secrets-store.csi.x-k8s.io"
POD_STATUSES = f"/apis/{STORE}/v1/namespaces/clusters-hc1/secretproviderclasspodstatuses"
REFUSAL = 'clusters-hc1 holds HyperShift\'s control plane "hc1"'
# What HyperShift's operators keep under the same names.
SHARED = {
    "secretproviderclasses": f"/apis/{STORE}/v1/namespaces/clusters-hc1/secretproviderclasses",
    "azureclusteridentities": (
        "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/clusters-hc1/azureclusteridentities"
    ),
    "secrets": f"{NAMESPACE}/secrets",
    "configmaps": f"{NAMESPACE}/configmaps",
}
DEPLOYMENTS = "/apis/apps/v1/namespaces/clusters-hc1/deployments"


def test_nothing_deletes_a_control_plane_and_the_switch_hands_it_over(
    stack: LocalStack, administrator: httpx.Client
) -> None:
    with control_plane(administrator):
        before = shared(administrator)
        assert {key.partition("/")[0] for key in before} == SHARED.keys()
        refused_to_delete_it(stack)
        with stack.configured(clusterSide="hypershift"):
            steps = stack.preview()
            guards = {"hc1-cluster-side-guard", "hc1-namespace-guard"}
            assert {name for name, step in steps.items() if step == "update"} == guards
            assert {name for name, step in steps.items() if step == "delete" and "-probe-" not in name} == set()
            stack.up()
            assert shared(administrator) == before
            assert administrator.get(DEPLOYMENTS).json()["items"] == []
            stack.up()
            assert shared(administrator) == before
            assert {name for name in names(stack) if "cluster-side" in name or "guard" in name} == set()
            assert administrator.get(NAMESPACE).json()["status"]["phase"] == "Active"
            with reported(administrator):
                status_shows_the_condition_and_the_mount(stack)
            stack.up("--expect-no-changes")
    stack.up()


def refused_to_delete_it(stack: LocalStack) -> None:
    known, down = names(stack), stack.idstack("down", check=False).stderr
    assert REFUSAL in down
    assert "`.venv/bin/idstack pulumi --stack local -- config set clusterSide hypershift`" in down
    destroyed = stack.pulumi("destroy", "--yes", "--skip-preview", check=False)
    assert REFUSAL in " ".join((destroyed.stdout + destroyed.stderr).split())
    assert {name for name in known - names(stack) if "-probe-" not in name} == set()
    up = stack.up(check=False)
    assert f'"hc1" with clusterSide: stack, but {REFUSAL}' in " ".join((up.stdout + up.stderr).split())


def status_shows_the_condition_and_the_mount(stack: LocalStack) -> None:
    status = json.loads(stack.idstack("status", "--json", check=False).stdout)["managementCluster"]
    [condition] = status["conditions"]["hc1"]
    [mount] = status["mounts"]["hc1"]["ingress"]

    assert (condition["type"], condition["status"], condition["expected"]) == ("ValidAzureKMSConfig", "False", False)
    assert (mount["pod"], mount["version"], mount["state"]) == ("ingress-operator-0", "0" * 32, "old")
    assert len(mount["vaultVersion"]) == 32
    assert status["unread"] == []


@contextmanager
def reported(http: httpx.Client) -> Iterator[None]:
    """What HyperShift's operator and the CSI driver would report: a condition, and a pod with an earlier version."""
    http.post("/api/v1/namespaces", json={"metadata": {"name": "clusters"}}).raise_for_status()
    clusters = f"/apis/{GROUP}/v1beta1/namespaces/clusters/hostedclusters"
    http.post(clusters, json=hosted_cluster("hc1", metadata__namespace="clusters")).raise_for_status()
    condition = {"type": "ValidAzureKMSConfig", "status": "False", "reason": "AzureError", "message": "encrypt failed"}
    merge = {"Content-Type": "application/merge-patch+json"}
    status = {"status": {"conditions": [condition]}}
    http.patch(f"{clusters}/hc1/status", json=status, headers=merge).raise_for_status()
    mounted = {
        "podName": "ingress-operator-0",
        "secretProviderClassName": "managed-azure-ingress",
        "mounted": True,
        "targetPath": "/var/lib/kubelet/pods/0",
        "objects": [{"id": "secret/ingress-hc1-json", "version": "0" * 32}],
    }
    name = "ingress-operator-0-clusters-hc1-managed-azure-ingress"
    document = {"apiVersion": f"{STORE}/v1", "kind": "SecretProviderClassPodStatus", "metadata": {"name": name}}
    http.post(POD_STATUSES, json={**document, "status": mounted}).raise_for_status()
    yield
    http.delete(f"{POD_STATUSES}/{name}").raise_for_status()
    http.delete(f"{clusters}/hc1").raise_for_status()
    http.delete("/api/v1/namespaces/clusters").raise_for_status()


def shared(http: httpx.Client) -> dict[str, str]:
    """Uid and version of each object that HyperShift's operators keep as well."""
    return {
        f"{plural}/{obj['metadata']['name']}": f"{obj['metadata']['uid']}/{obj['metadata']['resourceVersion']}"
        for plural, path in SHARED.items()
        for obj in http.get(path).raise_for_status().json()["items"]
    }


def names(stack: LocalStack) -> set[str]:
    return {resource["urn"].rpartition("::")[2] for resource in stack.resources() if resource["custom"]}
