"""The credential probes: each finds its credential as the real consumer does and proves it by one call."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from identity.aks.probe_pod import proof_argument
from identity.catalogue_rows import ProofTarget
from identity.clouds import CLOUDS, Cloud, local_cloud
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import GROUPS, MOUNTS, SUBSCRIPTION, VNET, row
from tests.unit.identity.settings.world import LOCAL

DEPLOYMENT = "kubernetes:apps/v1:Deployment"

# Deployment | SecretProviderClass | where the credential is mounted | the argument `--credential`
PROBES = {
    "probe-cloud-provider": ("managed-azure-cloud-provider", "/mnt/certs", "cloud-config:/etc/cloud/cloud.conf"),
    "probe-nodepool-management": (
        "managed-azure-nodepool-management", "/mnt/certs", "file:/mnt/certs/nodepool-mgmt-hc1-json"
    ),
    "probe-cpo": ("managed-azure-cpo", "/mnt/certs", "file:/mnt/certs/cpo-hc1-json"),
    "probe-image-registry": (
        "managed-azure-image-registry", "/mnt/certs", "env:MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH"
    ),
    "probe-ingress": ("managed-azure-ingress", "/mnt/certs", "env:MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH"),
    "probe-network": ("managed-azure-network", "/var/run/secrets/azure", "env:ARO_HCP_CLIENT_CREDENTIALS_PATH"),
    "probe-disk-csi": ("managed-azure-disk-csi", "/mnt/certs", "cloud-config:/etc/kubernetes/cloud.conf"),
    "probe-file-csi": ("managed-azure-file-csi", "/mnt/certs", "cloud-config:/etc/kubernetes/cloud.conf"),
    "probe-kms": ("managed-azure-kms", "/mnt/certs", "cloud-config:/etc/kubernetes/azure.json"),
    "probe-kms-2": ("managed-azure-kms", "/mnt/kms", "file:/mnt/kms/kms-hc1-json"),
}  # fmt: skip

MANAGED = f"{GROUPS}/hc1-managed"
# Deployment | path and version of the call | the action it needs
READS = {
    "probe-cloud-provider": (
        f"{MANAGED}/providers/Microsoft.Network/loadBalancers?api-version=2025-05-01",
        "Microsoft.Network/loadBalancers/read",
    ),
    "probe-nodepool-management": (
        f"{MANAGED}/providers/Microsoft.Compute/virtualMachines?api-version=2024-03-01",
        "Microsoft.Compute/virtualMachines/read",
    ),
    "probe-cpo": (
        f"/subscriptions/{SUBSCRIPTION}/resourcegroups/hc1-managed?api-version=2021-04-01",
        "Microsoft.Resources/subscriptions/resourceGroups/read",
    ),
    "probe-image-registry": (
        f"{MANAGED}/providers/Microsoft.Storage/storageAccounts?api-version=2023-05-01",
        "Microsoft.Storage/storageAccounts/read",
    ),
    "probe-ingress": (
        f"{VNET}/subnets/default?api-version=2023-11-01",
        "Microsoft.Network/virtualNetworks/subnets/read",
    ),
    "probe-network": (f"{VNET}?api-version=2024-05-01", "Microsoft.Network/virtualNetworks/read"),
    "probe-disk-csi": (
        f"{MANAGED}/providers/Microsoft.Compute/disks?api-version=2025-01-02",
        "Microsoft.Compute/disks/read",
    ),
    "probe-file-csi": (
        f"{MANAGED}/providers/Microsoft.Storage/storageAccounts?api-version=2025-01-01",
        "Microsoft.Storage/storageAccounts/read",
    ),
}
ENCRYPT = {
    "method": "POST",
    "url": "https://kv-etcd-dev.vault.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef/encrypt"
    "?api-version=2025-07-01",
    "scope": "https://vault.azure.net/.default",
    "action": "Microsoft.KeyVault/vaults/keys/encrypt/action",
    "body": {"alg": "RSA-OAEP-256", "value": "dGV4dA"},
}

every_probe = pytest.mark.parametrize("name", PROBES)


def spec(stack: RecordingMonitor, name: str) -> dict[str, Any]:
    found: dict[str, Any] = stack.one(DEPLOYMENT, f"hc1-cluster-side-{name}-deployment").inputs["spec"]
    return found


def arguments(stack: RecordingMonitor, name: str) -> dict[str, str]:
    """The probe's command line by option."""
    words = spec(stack, name)["template"]["spec"]["containers"][0]["args"]
    return dict(zip(words[::2], words[1::2], strict=True))


def test_there_is_one_probe_for_each_mount(stack: RecordingMonitor) -> None:
    deployments = [resource.inputs["metadata"] for resource in stack.all(DEPLOYMENT)]

    assert sorted(deployment["name"] for deployment in deployments) == sorted(
        row.probe_name(mount) for row, mount in MOUNTS
    )
    assert {deployment["namespace"] for deployment in deployments} == {"clusters-hc1"}


@every_probe
def test_a_probe_mounts_its_credential_where_the_consumer_does(stack: RecordingMonitor, name: str) -> None:
    secret_provider_class, path, _ = PROBES[name]
    pod = spec(stack, name)["template"]["spec"]

    volume = next(pod_volume for pod_volume in pod["volumes"] if "csi" in pod_volume)
    assert volume["csi"]["volumeAttributes"] == {"secretProviderClass": secret_provider_class}
    mount = next(
        volume_mount for volume_mount in pod["containers"][0]["volumeMounts"] if volume_mount["name"] == volume["name"]
    )
    assert (mount["mountPath"], mount["readOnly"]) == (path, True)


@every_probe
def test_a_probe_makes_a_call_that_the_identitys_role_grants(stack: RecordingMonitor, name: str) -> None:
    given = arguments(stack, name)
    path, action = READS.get(name, ("", ""))
    read = {
        "method": "GET",
        "url": f"https://management.azure.com{path}",
        "scope": "https://management.core.windows.net//.default",
        "action": action,
    }

    assert (given["--credential"], given["--listen"]) == (PROBES[name][2], "$(POD_IP):8080")
    assert json.loads(given["--proof"]) == (read if name in READS else ENCRYPT)


@every_probe
def test_a_probe_is_one_unprivileged_pod_with_a_readiness_probe(stack: RecordingMonitor, name: str) -> None:
    labels = {"app.kubernetes.io/name": "credential-probe", "app.kubernetes.io/instance": name}
    got = spec(stack, name)
    pod = got["template"]["spec"]
    container = pod["containers"][0]

    assert (got["replicas"], got["selector"]["matchLabels"], got["template"]["metadata"]["labels"]) == (
        1,
        labels,
        labels,
    )
    assert len(pod["containers"]) == 1
    assert container["env"][0] == {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    assert container["image"] == "idstack.azurecr.io/idstack/credential-probe:1.0"
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 8080}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 8080}
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


TARGET = ProofTarget(
    subscription="s",
    managed="m",
    vnet_group="vg",
    vnet="vn",
    subnet="sn",
    key_vault="kv",
    key="k",
    key_version="v",
    backup_storage="/b",
)


def proof(field: str, cloud: Cloud, target: ProofTarget = TARGET) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(proof_argument(row(field).proof, cloud, target))
    return read


def test_another_cloud_has_other_endpoints_and_scopes() -> None:
    china = CLOUDS["AzureChinaCloud"]

    arm = proof("disk", china)
    vault = proof("kms", china)

    assert arm["url"].startswith("https://management.chinacloudapi.cn/subscriptions/s/resourceGroups/m/")
    assert arm["scope"] == "https://management.core.chinacloudapi.cn//.default"
    assert vault["url"].startswith("https://kv.vault.azure.cn/keys/k/v/encrypt?")
    assert vault["scope"] == "https://vault.azure.cn/.default"


def test_a_key_in_a_managed_hsm_is_used_there() -> None:
    got = proof("kms", CLOUDS["AzureChinaCloud"], replace(TARGET, is_managed_hsm=True))

    assert got["url"].startswith("https://kv.managedhsm.azure.cn/keys/k/v/encrypt?")
    assert got["scope"] == "https://managedhsm.azure.cn/.default"
    assert got["action"] == "Microsoft.KeyVault/managedHsm/keys/encrypt/action"


def test_in_the_local_cloud_the_vault_is_named_by_the_host_header() -> None:
    got = proof("kms", local_cloud(LOCAL))

    assert got["url"].startswith("https://localhost:4004/keys/k/v/encrypt?")
    assert got["headers"] == {"Host": "kv.vault.azure.net"}
