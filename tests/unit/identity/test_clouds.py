"""Endpoints of one cloud belong together."""

from __future__ import annotations

from pathlib import Path

import pytest

from identity.clouds import CLOUDS, LocalEnvironment, local_cloud
from tests.records import write_record
from tests.unit.identity.settings.world import LOCAL


@pytest.mark.parametrize(
    ("name", "authority", "arm", "vault"),
    [
        ("AzurePublicCloud", "login.microsoftonline.com", "management.azure.com", "vault.azure.net"),
        ("AzureUSGovernmentCloud", "login.microsoftonline.us", "management.usgovcloudapi.net", "vault.usgovcloudapi.net"),  # noqa: E501
        ("AzureChinaCloud", "login.chinacloudapi.cn", "management.chinacloudapi.cn", "vault.azure.cn"),
    ],
)  # fmt: skip
def test_a_cloud_has_its_own_endpoints(name: str, authority: str, arm: str, vault: str) -> None:
    cloud = CLOUDS[name]

    assert cloud.authority_host == f"https://{authority}/"
    assert cloud.arm_endpoint == f"https://{arm}"
    assert cloud.vault_request("kv") == (f"https://kv.{vault}", {})
    assert cloud.hosted_cluster_cloud == name


def test_the_local_cloud_distinguishes_vaults_by_host_header() -> None:
    cloud = local_cloud(LOCAL)

    assert cloud.vault_request("kv") == ("https://localhost:4004", {"Host": "kv.vault.azure.net"})
    assert cloud.hosted_cluster_cloud == "AzurePublicCloud", "a HostedCluster knows no cloud named local"


def test_the_record_of_the_local_cloud_is_read_back(tmp_path: Path) -> None:
    record = write_record(tmp_path / "environment.json", LOCAL)

    assert '"keyVaultEndpoint": "https://localhost:4004"' in record.read_text(encoding="utf-8")
    assert LocalEnvironment.from_file(record) == LOCAL


@pytest.mark.parametrize("text", ["{}", "[]", '{"authorityHost": "x", "surprise": 1}'])
def test_another_file_is_not_taken_for_the_record(tmp_path: Path, text: str) -> None:
    record = tmp_path / "environment.json"
    record.write_text(text, encoding="utf-8")

    with pytest.raises(ValueError, match="is not a record of the local cloud"):
        LocalEnvironment.from_file(record)
