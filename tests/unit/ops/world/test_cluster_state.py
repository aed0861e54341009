"""Conditions and mounted versions: what is expected, what is old, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from identity.aks.api_server import ApiServer
from identity.resource_types import STACK
from localcloud.testing.hosts import Serve
from ops.world.cluster_state import ClusterState, compare, read_control_plane
from ops.world.expected import expected
from ops.world.seen import HostedClusterCondition, Part
from tests.unit.access_world import FakeApiServer
from tests.unit.ops.cluster_access import CLUSTER, access_to
from tests.unit.ops.conftest import secrets
from tests.unit.ops.doctor import worlds
from tests.unit.ops.stacks import output

HOSTED_CLUSTER = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/hc1"
POD_STATUSES = "/apis/secrets-store.csi.x-k8s.io/v1/namespaces/clusters-hc1/secretproviderclasspodstatuses"
OUTPUTS: Any = {
    "clusterSide": "hypershift",
    "hostedClusters": {
        "hc1": {
            "namespace": "clusters",
            "controlPlane": {
                "ingress": output("managed-azure-ingress", "ingress-hc1-json"),
                "kms": output("managed-azure-kms", "kms-hc1-json"),
            },
        }
    },
}
VERSIONS = {"ingress-hc1-json": "2222", "kms-hc1-json": "3333"}


def pod_status(pod: str, name: str, secret: str, version: str, *, mounted: bool = True) -> dict[str, Any]:
    status = {
        "podName": pod,
        "secretProviderClassName": name,
        "mounted": mounted,
        "objects": [{"id": f"secret/{secret}", "version": version}],
    }
    return {"metadata": {"name": f"{pod}-clusters-hc1-{name}"}, "status": status}


@pytest.fixture
def api() -> FakeApiServer:
    api = FakeApiServer()
    conditions = [
        {"type": "Available", "status": "True", "reason": "AsExpected", "message": ""},
        {"type": "Degraded", "status": "False", "reason": "AsExpected"},
        {"type": "ValidAzureKMSConfig", "status": "False", "reason": "AzureError", "message": "encrypt failed: 403"},
        {"type": "EtcdAvailable", "status": "True", "reason": "QuorumAvailable"},
    ]
    api.documents[HOSTED_CLUSTER] = {"status": {"conditions": conditions}}
    api.documents[POD_STATUSES] = {
        "items": [
            pod_status("kube-apiserver-0", "managed-azure-kms", "kms-hc1-json", "3333"),
            pod_status("ingress-operator-1", "managed-azure-ingress", "ingress-hc1-json", "2222"),
            pod_status("ingress-operator-0", "managed-azure-ingress", "ingress-hc1-json", "1111"),
            pod_status("ingress-operator-2", "managed-azure-ingress", "ingress-hc1-json", "2222", mounted=False),
            pod_status("etcd-backup-0", "managed-azure-backup", "ingress-hc1-json", "1111"),
            {"metadata": {"name": "just-made"}},
        ]
    }
    return api


@pytest.fixture
def server(api: FakeApiServer, serve_plain: Serve) -> Iterator[ApiServer]:
    access = access_to(serve_plain(api.app()))
    assert access.cluster is not None
    with ApiServer(access.kubeconfig, access.cluster, {}) as server:
        yield server


def read(server: ApiServer, outputs: Any, versions: dict[str, str]) -> ClusterState:
    outputs = {**outputs, "managementClusterId": CLUSTER}
    stack: Any = {"urn": "urn:pulumi:dev::idstack::pulumi:pulumi:Stack::idstack-dev", "type": STACK, "outputs": outputs}
    state = expected({"version": 3, "deployment": {"resources": [stack]}})
    planes = {one.cluster: read_control_plane(server, one, {Part.CONTROL_PLANES}, None) for one in state.clusters}
    found = compare(replace(worlds.healthy(), state=state, control_planes=planes, secrets=secrets(versions)))
    assert found is not None
    return found


def test_each_pod_and_each_condition_is_compared_with_what_is_expected(server: ApiServer) -> None:
    found = read(server, OUTPUTS, VERSIONS)

    assert [(mount.identity, mount.pod, mount.version, mount.state) for mount in found.mounts] == [
        ("ingress", "ingress-operator-0", "1111", "old"),
        ("ingress", "ingress-operator-1", "2222", "current"),
        ("ingress", "ingress-operator-2", "2222", "not mounted"),
        ("kms", "kube-apiserver-0", "3333", "current"),
    ]
    assert found.unread == ()
    assert [(condition.type, condition.is_expected, condition.is_shown) for condition in found.conditions] == [
        ("Available", True, True),
        ("Degraded", True, True),
        ("ValidAzureKMSConfig", False, True),
        ("EtcdAvailable", True, False),
    ]
    of_the_stack = read(server, OUTPUTS | {"clusterSide": "stack"}, VERSIONS)
    assert (of_the_stack.conditions, of_the_stack.mounts, of_the_stack.unread) == ((), found.mounts, ())


KMS = {"secretEncryption": {"kms": {"azure": {"keyVaultAccess": "Public"}}}}
PRIVATE_KMS = {"secretEncryption": {"kms": {"azure": {"keyVaultAccess": "Private"}}}}
NAMED = {
    "services": [{"service": "APIServer", "servicePublishingStrategy": {"type": "Route", "route": {"hostname": "api"}}}]
}
UNNAMED = {"services": [{"service": "APIServer", "servicePublishingStrategy": {"type": "Route"}}]}
ONLY_PRIVATE = {"platform": {"azure": {"topology": "Private"}}}


@pytest.mark.parametrize(
    ("spec", "kms", "external_dns"),
    [
        ({}, True, True),
        ({**KMS, **NAMED}, False, False),
        ({**PRIVATE_KMS, **NAMED}, True, False),
        ({**KMS, **UNNAMED}, False, True),
        ({**KMS, **NAMED, **ONLY_PRIVATE}, False, True),
    ],
)
def test_what_hypershift_cannot_know_may_be_unknown(
    api: FakeApiServer, server: ApiServer, spec: dict[str, Any], kms: bool, external_dns: bool
) -> None:
    """As `ExpectedHCConditions` in support/conditions/conditions.go:57-68 and 110-116."""

    def judged(status: str) -> dict[str, bool]:
        types = ("ValidAzureKMSConfig", "ExternalDNSReachable")
        conditions = [{"type": type_name, "status": status} for type_name in types]
        api.documents[HOSTED_CLUSTER] = {"spec": spec, "status": {"conditions": conditions}}
        return {condition.type: condition.is_expected for condition in read(server, OUTPUTS, VERSIONS).conditions}

    assert judged("Unknown") == {"ValidAzureKMSConfig": kms, "ExternalDNSReachable": external_dns}
    assert set(judged("True").values()) == {True}
    assert set(judged("False").values()) == {False}
    for condition, status, is_expected in (
        ("Progressing", "True", False),
        ("Progressing", "Unknown", False),
        ("ClusterVersionFailing", "False", True),
        ("ValidConfiguration", "Unknown", False),
        ("ClusterVersionUpgradeable", "Unknown", True),
    ):
        assert HostedClusterCondition("hc1", condition, status, "", "").is_expected == is_expected


def test_what_may_not_be_read_is_named_and_the_rest_is_there(server: ApiServer, api: FakeApiServer) -> None:
    api.unreadable = {HOSTED_CLUSTER}

    found = read(server, OUTPUTS, {})

    assert found.conditions == ()
    assert {mount.state for mount in found.mounts} == {"not known", "not mounted"}
    [unread] = found.unread
    assert unread == f"the conditions of hc1: deployer-object-id may not read {HOSTED_CLUSTER} at {server.server}"
    api.documents, api.unreadable = {}, set()
    not_there_yet = ClusterState(unread=("the conditions of hc1: there is no HostedCluster clusters/hc1",))
    assert read(server, OUTPUTS, VERSIONS) == not_there_yet
