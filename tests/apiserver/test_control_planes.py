"""HyperShift has a control plane in the stack's namespace: nothing deletes it, and the switch hands it over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

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


@dataclass(frozen=True, kw_only=True)
class HandOverScenario:
    """What each command says, and what is in the namespace: uids and versions of what HyperShift uses, too."""

    down: str
    destroy: str
    deleted_by_destroy: set[str]
    up: str
    switch_preview: dict[str, str]
    before: dict[str, str]
    after_switch: dict[str, str]
    own_after_switch: list[str]
    after_next_run: dict[str, str]
    in_state: list[str]
    namespace: dict[str, Any]
    status: dict[str, Any]


@pytest.fixture(scope="module")
def scenario(stack: LocalStack, administrator: httpx.Client) -> Iterator[HandOverScenario]:
    with control_plane(administrator):
        yield HandOverScenario(**commands(stack, administrator))
    stack.up()


def commands(stack: LocalStack, administrator: httpx.Client) -> dict[str, Any]:
    """What each command says and leaves."""
    before, known = shared(administrator), names(stack)
    facts: dict[str, Any] = {"before": before}
    facts["down"] = stack.idstack("down", check=False).stderr
    done = stack.pulumi("destroy", "--yes", "--skip-preview", check=False)
    facts["destroy"] = done.stdout + done.stderr
    facts["deleted_by_destroy"] = known - names(stack)
    done = stack.up(check=False)
    facts["up"] = done.stdout + done.stderr
    with stack.configured(clusterSide="hypershift"):
        facts["switch_preview"] = stack.preview()
        stack.up()
        facts["after_switch"] = shared(administrator)
        facts["own_after_switch"] = [
            deployment["metadata"]["name"] for deployment in administrator.get(DEPLOYMENTS).json()["items"]
        ]
        stack.up()
        facts["after_next_run"] = shared(administrator)
        facts["in_state"] = sorted(name for name in names(stack) if "cluster-side" in name or "guard" in name)
        facts["namespace"] = administrator.get(NAMESPACE).json()
        with reported(administrator):
            facts["status"] = json.loads(stack.idstack("status", "--json", check=False).stdout)["managementCluster"]
        stack.up("--expect-no-changes")
    return facts


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


def test_down_refuses_and_says_what_to_do(scenario: HandOverScenario) -> None:
    assert REFUSAL in scenario.down
    assert "`.venv/bin/idstack pulumi --stack local -- config set clusterSide hypershift`" in scenario.down


def test_a_bare_destroy_deletes_nothing_that_a_control_plane_needs(scenario: HandOverScenario) -> None:
    assert REFUSAL in " ".join(scenario.destroy.split())
    assert {name for name in scenario.deleted_by_destroy if "-probe-" not in name} == set()


def test_up_with_the_stacks_own_cluster_side_is_refused(scenario: HandOverScenario) -> None:
    assert '"hc1" with clusterSide: stack, but ' + REFUSAL in " ".join(scenario.up.split())


def test_the_switch_deletes_the_probes_and_nothing_else(scenario: HandOverScenario) -> None:
    steps = scenario.switch_preview

    guards = {"hc1-cluster-side-guard", "hc1-namespace-guard"}
    assert {name for name, step in steps.items() if step == "update"} == guards
    assert {name for name, step in steps.items() if step == "delete" and "-probe-" not in name} == set()
    assert scenario.own_after_switch == []


def test_what_hypershift_uses_stays_untouched(scenario: HandOverScenario) -> None:
    assert {key.partition("/")[0] for key in scenario.before} == SHARED.keys()
    assert scenario.after_switch == scenario.before
    assert scenario.after_next_run == scenario.before
    assert scenario.namespace["status"]["phase"] == "Active"


def test_after_the_next_run_the_state_has_nothing_of_it(scenario: HandOverScenario) -> None:
    assert scenario.in_state == []


def test_status_shows_the_condition_and_the_pod_that_has_an_earlier_version(scenario: HandOverScenario) -> None:
    [condition] = scenario.status["conditions"]["hc1"]
    [mount] = scenario.status["mounts"]["hc1"]["ingress"]

    assert (condition["type"], condition["status"], condition["expected"]) == ("ValidAzureKMSConfig", "False", False)
    assert (mount["pod"], mount["version"], mount["state"]) == ("ingress-operator-0", "0" * 32, "old")
    assert len(mount["vaultVersion"]) == 32
    assert scenario.status["unread"] == []
