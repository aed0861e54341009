"""Two hosted clusters on one management cluster: each signs in, and the end of one is nothing to the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness import LocalStack

_KINDS = {
    "/apis/secrets-store.csi.x-k8s.io/v1": ("secretproviderclasses", "secretproviderclasspodstatuses"),
    "/apis/infrastructure.cluster.x-k8s.io/v1beta1": ("azureclusteridentities",),
    "/api/v1": ("pods", "secrets", "configmaps"),
}


@pytest.fixture(scope="module")
def cluster_added(stack: LocalStack, deployer: httpx.Client) -> Iterator[dict[str, str]]:
    """The stack with a second cluster; gives what the first one's objects were before."""
    before = objects(deployer, "clusters-hc1")
    [first] = stack.configuration("hostedClusters")
    second = {**first, "name": "hc2", "infraID": "hc2-infra", "identities": {}}
    with stack.configured(hostedClusters=[first, second]):
        stack.up()
        yield before
    if deployer.get("/api/v1/namespaces/clusters-hc2").is_success:
        stack.up()


def objects(http: httpx.Client, namespace: str) -> dict[str, str]:
    """What identifies each object of a namespace; of pods, which tell their state all the time, the uid."""
    found = {}
    for root, plurals in _KINDS.items():
        for plural in plurals:
            items: list[dict[str, Any]] = http.get(f"{root}/namespaces/{namespace}/{plural}").json()["items"]
            for item in items:
                metadata = item["metadata"]
                version = metadata["uid"] if plural == "pods" else metadata["resourceVersion"]
                found[f"{plural}/{metadata['name']}"] = version
    return found


def ready(http: httpx.Client, namespace: str) -> list[str]:
    """The ready pods' Deployments: a probe is ready when its sign-in and its call at Azure have worked."""
    pods = http.get(f"/api/v1/namespaces/{namespace}/pods").json()["items"]
    return sorted(
        pod["metadata"]["labels"]["app.kubernetes.io/instance"]
        for pod in pods
        if {"type": "Ready", "status": "True"}.items()
        <= next(condition for condition in pod["status"]["conditions"] if condition["type"] == "Ready").items()
    )


def test_every_probe_of_both_clusters_signs_in(
    stack: LocalStack, deployer: httpx.Client, cluster_added: dict[str, str]
) -> None:
    probes = [
        *("cloud-provider", "cpo", "disk-csi", "file-csi", "image-registry", "ingress", "kms", "kms-2", "network"),
        "nodepool-management",
    ]

    assert ready(deployer, "clusters-hc1") == [f"probe-{probe}" for probe in probes]
    assert ready(deployer, "clusters-hc2") == [f"probe-{probe}" for probe in probes]


def test_the_second_cluster_and_its_end_leave_the_first_alone(
    stack: LocalStack, deployer: httpx.Client, cluster_added: dict[str, str]
) -> None:
    assert objects(deployer, "clusters-hc1") == cluster_added

    [first, _] = stack.configuration("hostedClusters")
    with stack.configured(hostedClusters=[first]):
        stack.up()

    assert objects(deployer, "clusters-hc1") == cluster_added
    assert deployer.get("/api/v1/namespaces/clusters-hc2").status_code == 404
    assert deployer.get("/api/v1/namespaces/clusters-hc2/pods").json()["items"] == []
