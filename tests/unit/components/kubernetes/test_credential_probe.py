"""The credential probes: each finds its credential as the real consumer does and proves it by one call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identity.aks.probe_pod import proof_argument
from identity.catalogue_rows import ProofTarget
from identity.clouds import CLOUDS, Cloud, local_cloud
from tests.unit import cases
from tests.unit.components import world
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import MOUNTS, row
from tests.unit.identity.settings.world import LOCAL

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
PROBES = cases.read(Path(__file__).with_name("probes.yaml"), vars(world))
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
    found: dict[str, Any] = stack.one(DEPLOYMENT, f"hc1-cluster-side-probe-{name}-deployment").inputs["spec"]
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
    pod = spec(stack, name)["template"]["spec"]

    volume = next(pod_volume for pod_volume in pod["volumes"] if "csi" in pod_volume)
    assert volume["csi"]["volumeAttributes"] == {"secretProviderClass": PROBES[name]["class"]}
    mount = next(
        volume_mount for volume_mount in pod["containers"][0]["volumeMounts"] if volume_mount["name"] == volume["name"]
    )
    assert (mount["mountPath"], mount["readOnly"]) == (PROBES[name]["mount"], True)


@every_probe
def test_a_probe_makes_a_call_that_the_identitys_role_grants(stack: RecordingMonitor, name: str) -> None:
    given = arguments(stack, name)
    probe = PROBES[name]
    read = {
        "method": "GET",
        "url": f"https://management.azure.com{probe.get('path')}",
        "scope": "https://management.core.windows.net//.default",
        "action": probe.get("action"),
    }

    assert (given["--credential"], given["--listen"]) == (probe["credential"], "$(POD_IP):8080")
    assert json.loads(given["--proof"]) == (read if "path" in probe else ENCRYPT)


@every_probe
def test_a_probe_is_one_unprivileged_pod_with_a_readiness_probe(stack: RecordingMonitor, name: str) -> None:
    labels = {"app.kubernetes.io/name": "credential-probe", "app.kubernetes.io/instance": f"probe-{name}"}
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
