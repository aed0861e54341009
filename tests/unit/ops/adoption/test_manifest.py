"""A HostedCluster that runs: the configuration repeats it, and it must be that of the scripts' files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from localcloud.testing.hosted_clusters import ABSENT, NETWORK, UUID, hosted_cluster
from ops.adoption.entry import values
from ops.adoption.files import ControlPlaneFile, ScriptIdentity, named_by_iam, named_by_scripts, read_manifest
from ops.stack.errors import CommandError
from tests.unit.ops.adoption.scripted import EXISTING

# `hosted_cluster` gives all identities of a plane the same client id.
FIELD = CONTROL_PLANE[0].field
NAMED = ControlPlaneFile(
    {FIELD: ScriptIdentity(UUID.format(3), f"{FIELD.lower()}-hc1-json", "utf-8")}, {}, "kv-idstack-local"
)
MANAGED = {DATA_PLANE[0].field: UUID.format(4)}
ZONE = "/subscriptions/x/resourceGroups/dns/providers/Microsoft.Network/dnsZones/example.com"
IDENTITIES = "spec__platform__azure__azureAuthenticationConfig__managedIdentities"


def found(tmp_path: Path, cluster: str = "hc1", **changes: Any) -> Any:
    file = tmp_path / "hc.yaml"
    file.write_text(yaml.safe_dump(hosted_cluster("hc1", **changes)), encoding="utf-8")
    return read_manifest(file, cluster, named_by_scripts(NAMED, MANAGED), UUID.format(1))


def test_everything_that_the_configuration_repeats_is_read(tmp_path: Path) -> None:
    zones = {"baseDomain": "example.com", "publicZoneID": ZONE}

    assert found(tmp_path, spec__dns=zones) == {
        ("namespace",): "default",
        ("infraID",): "hc1-infra",
        ("issuerURL",): "https://oidc.example.com/hc1",
        ("location",): "eastus",
        ("resourceGroup",): "hc1-managed",
        ("vnetID",): f"{NETWORK}/virtualNetworks/hc1-vnet",
        ("subnetID",): f"{NETWORK}/virtualNetworks/hc1-vnet/subnets/default",
        ("securityGroupID",): f"{NETWORK}/networkSecurityGroups/hc1-nsg",
        ("dns", "baseDomain"): "example.com",
        ("dns", "publicZoneID"): ZONE,
        ("dnsZoneResourceGroup",): "dns",
        ("kms", "activeKey", "keyVaultName"): "kv-etcd",
        ("kms", "activeKey", "keyName"): "hc1-etcd",
        ("kms", "activeKey", "keyVersion"): "0123456789abcdef0123456789abcdef",
    }


def test_a_cluster_without_kms_and_zones_has_neither(tmp_path: Path) -> None:
    places = found(tmp_path, spec__secretEncryption=ABSENT)

    assert not [place for place in places if place[0] in ("kms", "dns", "dnsZoneResourceGroup")]


@pytest.mark.parametrize(
    ("cluster", "changes", "problem"),
    [
        ("hc2", {}, "metadata.name: found hc1; accepted: hc2"),
        ("hc1", {"spec__platform__azure__subscriptionID": "x"}, "subscriptionID: found x"),
        ("hc1", {f"{IDENTITIES}__dataPlane__{DATA_PLANE[0].field}": "x"}, f"{DATA_PLANE[0].field}: found x"),
        ("hc1", {f"{IDENTITIES}__controlPlane__{FIELD}__clientID": "x"}, f"{FIELD}.clientID: found x"),
        (
            "hc1",
            {f"{IDENTITIES}__controlPlane__{FIELD}__credentialsSecretName": "x"},
            f"{FIELD}.credentialsSecretName: found x; accepted: {FIELD.lower()}-hc1-json",
        ),
    ],
)
def test_another_hosted_cluster_is_refused(tmp_path: Path, cluster: str, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(CommandError) as refused:
        found(tmp_path, cluster, **changes)

    assert "is not the HostedCluster of these files" in str(refused.value)
    assert problem in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "kind: List", "- x"])
def test_another_file_says_how_to_write_one(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hc.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(CommandError, match=r"has no HostedCluster; write one: `kubectl get hostedcluster hc1"):
        read_manifest(file, "hc1", {}, UUID.format(1))


def test_workload_identities_are_where_the_api_has_them() -> None:
    rows = [row for row in CONTROL_PLANE if row.workload is not None]

    places = named_by_iam({row.field: UUID.format(1) for row in rows})

    assert set(places) == {("spec", *row.workload_path, "clientID") for row in rows}


def test_a_key_that_is_configured_as_its_url_stays(tmp_path: Path) -> None:
    known = found(tmp_path)
    url = {"activeKey": "https://kv-etcd.vault.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef"}

    written = values({"hostedClusters": [{"name": "hc1", "kms": url}]}, "hc1", known, NAMED, EXISTING)

    assert not [place for place in written if "kms" in place]
    assert written["hostedClusters[0].vnetID"] == f"{NETWORK}/virtualNetworks/hc1-vnet"
