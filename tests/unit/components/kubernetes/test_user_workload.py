"""Workloads of the user's own: wired like the identities' consumers, unprivileged, after everything they mount."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import hosted_cluster

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
BUDGET = "kubernetes:policy/v1:PodDisruptionBudget"
IMAGE = "registry.example.com/backup:1"
LABELS = {"app.kubernetes.io/name": "user-workload", "app.kubernetes.io/instance": "backup"}

MINIMAL = {"name": "report", "image": "registry.example.com/report@sha256:" + "0" * 64, "identities": ["network"]}
WHOLE = {
    "name": "backup",
    "image": IMAGE,
    "command": ["backup"],
    "args": ["--every", "1h"],
    "identities": ["kms", "disk"],
    "replicas": 2,
    "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
    "serviceAccount": "backup",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [
        {"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        {"key": "y", "value": "z"},
    ],
}


@pytest.fixture(scope="module")
def with_workloads(program: Program) -> RecordingMonitor:
    return program(hostedClusters=[hosted_cluster(workloads=[MINIMAL, WHOLE])])


def deployment(recorder: RecordingMonitor, name: str) -> dict[str, Any]:
    return dict(recorder.one(DEPLOYMENT, f"hc1-cluster-side-workload-{name}-deployment").inputs)


def csi(name: str, secret_provider_class: str) -> dict[str, Any]:
    return {
        "name": name,
        "csi": {
            "driver": "secrets-store.csi.k8s.io",
            "readOnly": True,
            "volumeAttributes": {"secretProviderClass": secret_provider_class},
        },
    }


POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def test_a_workload_is_a_deployment_with_all_of_its_settings_and_a_budget(with_workloads: RecordingMonitor) -> None:
    assert with_workloads.one(BUDGET).inputs == {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "backup", "namespace": "clusters-hc1", "labels": LABELS},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}},
    }
    assert deployment(with_workloads, "backup") == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "backup", "namespace": "clusters-hc1", "labels": LABELS},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "securityContext": POD_SECURITY,
                    "serviceAccountName": "backup",
                    "automountServiceAccountToken": True,
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [
                        {"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
                        {"key": "y", "operator": "Equal", "value": "z"},
                    ],
                    "volumes": [
                        {"name": "tmp-dir", "emptyDir": {}},
                        csi("kms-cert", "managed-azure-kms"),
                        csi("azure-disk", "managed-azure-disk-csi"),
                        {"name": "cloud-config", "secret": {"secretName": "azure-disk-csi-config"}},
                    ],
                    "containers": [
                        {
                            "name": "backup",
                            "image": IMAGE,
                            "command": ["backup"],
                            "args": ["--every", "1h"],
                            "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
                            "securityContext": CONTAINER_SECURITY,
                            "volumeMounts": [
                                {"name": "tmp-dir", "mountPath": "/tmp"},
                                {"name": "kms-cert", "mountPath": "/mnt/kms", "readOnly": True},
                                {"name": "azure-disk", "mountPath": "/mnt/certs", "readOnly": True},
                                {"name": "cloud-config", "mountPath": "/etc/kubernetes", "readOnly": True},
                            ],
                            "env": [{"name": "AZURE_CREDENTIAL_FILE", "value": "/etc/kubernetes/cloud.conf"}],
                        }
                    ],
                },
            },
        },
    }


def test_what_was_left_out_is_left_to_the_image_and_to_kubernetes(with_workloads: RecordingMonitor) -> None:
    pod = deployment(with_workloads, "report")["spec"]["template"]["spec"]

    assert pod == {
        "securityContext": POD_SECURITY,
        "automountServiceAccountToken": False,
        "volumes": [{"name": "tmp-dir", "emptyDir": {}}, csi("cncc-cert", "managed-azure-network")],
        "containers": [
            {
                "name": "report",
                "image": MINIMAL["image"],
                "securityContext": CONTAINER_SECURITY,
                "volumeMounts": [
                    {"name": "tmp-dir", "mountPath": "/tmp"},
                    {"name": "cncc-cert", "mountPath": "/var/run/secrets/azure", "readOnly": True},
                ],
                "env": [{"name": "ARO_HCP_CLIENT_CREDENTIALS_PATH", "value": "/var/run/secrets/azure/cncc-hc1-json"}],
            }
        ],
    }


def test_a_workload_comes_after_all_that_it_mounts(with_workloads: RecordingMonitor) -> None:
    workload = with_workloads.one(DEPLOYMENT, "hc1-cluster-side-workload-backup-deployment")
    needed = [
        resource
        for resource in with_workloads.registered
        for identity in ("kms", "disk")
        if resource.name
        in (
            f"hc1-{identity}-credential-secret",
            f"hc1-{identity}-roles-managed",
            f"hc1-cluster-side-{identity}-class-object",
            f"hc1-cluster-side-{identity}-config-secret",
        )
    ]

    assert len(needed) == 7, "the role of KMS is at its vault"
    assert [resource.name for resource in needed if not with_workloads.waits_for(workload, resource)] == []


def test_a_workload_changes_nothing_else(stack: RecordingMonitor, with_workloads: RecordingMonitor) -> None:
    added = {resource.urn for resource in with_workloads.registered} - {resource.urn for resource in stack.registered}

    assert len(added) == 2 + 2 + 1
    assert all("hc1-cluster-side-workload-" in urn for urn in added)
    assert with_workloads.stack_outputs == stack.stack_outputs
