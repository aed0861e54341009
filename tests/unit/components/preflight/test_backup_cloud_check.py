"""HyperShift uploads etcd backups to the storage of Azure's public cloud alone, so any other one is a warning."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.unit.components import world
from tests.unit.components.program import Program
from tests.unit.components.world import GROUPS, hosted_cluster

_ACCOUNT: Final = f"{GROUPS}/backup-dev/providers/Microsoft.Storage/storageAccounts/backupsdev"
_BACKUPS: Final = {"identities": {"etcdBackup": {"enabled": True}}, "backupStorageAccountID": _ACCOUNT}
_GOVERNMENT_KMS: Final = {
    "activeKey": "https://kv-etcd-dev.vault.usgovcloudapi.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef",
    "keyVaultResourceGroup": "etcd-dev",
}


def warned(program: Program, monkeypatch: pytest.MonkeyPatch, cloud: str, **cluster: Any) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", found.append)
    kms = {} if cloud == "AzurePublicCloud" else {"kms": _GOVERNMENT_KMS}
    program(cloud=cloud, hostedClusters=[hosted_cluster(**kms, **cluster)], lookups_only=True, invokes=world.lookups())
    return found


def test_backups_in_a_sovereign_cloud_are_a_warning(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert warned(program, monkeypatch, "AzureUSGovernmentCloud", **_BACKUPS) == [
        "idstack:hostedClusters[0] has etcdBackup, and HyperShift uploads etcd backups to "
        "<account>.blob.core.windows.net alone, which AzureUSGovernmentCloud does not have "
        "(openshift/hypershift#9457): the identity is made, and an HCPEtcdBackup fails"
    ]


def test_backups_in_the_public_cloud_are_none(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert warned(program, monkeypatch, "AzurePublicCloud", **_BACKUPS) == []


def test_a_sovereign_cloud_without_backups_is_none(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert warned(program, monkeypatch, "AzureUSGovernmentCloud") == []
