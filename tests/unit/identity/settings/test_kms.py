"""The encryption of etcd: with or without KMS, one key or two, in a vault or in a managed HSM."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from tests.unit.identity.settings.world import (
    ABSENT,
    KEY_VERSION,
    LOCAL,
    configuration,
    load,
    refusals,
    report,
)

KMS = "hostedClusters[0].kms"
HSM = f"https://hsm-etcd.managedhsm.azure.net/keys/etcd/{KEY_VERSION}"
BEFORE = f"https://kv-before.vault.azure.net/keys/etcd/{KEY_VERSION}"
GROUP = {"backupKeyVaultResourceGroup": "before"}


def with_kms(**changes: Any) -> dict[str, Any]:
    return configuration(**{f"hostedClusters__0__kms__{key}": value for key, value in changes.items()})


def test_without_kms_its_identity_is_off_and_no_other() -> None:
    [cluster] = load(configuration(hostedClusters__0__kms=ABSENT)).hosted_clusters

    assert cluster.kms is None
    assert [row.field for row in CONTROL_PLANE if cluster.identity(row).enabled is not row.enabled_by_default] == [
        "kms"
    ]


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"hostedClusters__0__kms": ABSENT, "hostedClusters__0__identities": {"kms": {"enabled": True}}}, True),
        ({"hostedClusters__0__kms": ABSENT, "hostedClusters__0__identities": {"kms": {"enabled": False}}}, False),
    ],
)
def test_without_kms_its_identity_cannot_be_on(change: dict[str, Any], refused: bool) -> None:
    place = ("hostedClusters[0].identities.kms.enabled", "identity-without-purpose")

    assert refusals(configuration(**change)) == ([place] if refused else [])


def test_a_workload_cannot_mount_an_identity_without_purpose() -> None:
    workload = {"name": "backup", "image": "registry.example.com/backup:1", "identities": ["kms"]}

    assert refusals(configuration(hostedClusters__0__kms=ABSENT, hostedClusters__0__workloads=[workload])) == [
        ("hostedClusters[0].workloads[0].identities[0]", "workload-identity-disabled")
    ]


def test_the_backup_key_is_a_url_or_three_fields_as_the_active_one() -> None:
    [cluster] = load(with_kms(backupKey=BEFORE, backupKeyVaultResourceGroup="before")).hosted_clusters

    assert cluster.kms is not None
    assert cluster.kms.vaults == {"kv-etcd": "identity", "kv-before": "before"}
    fields = {"keyVaultName": "kv-before", "keyName": "etcd", "keyVersion": KEY_VERSION}
    assert load(with_kms(backupKey=fields, backupKeyVaultResourceGroup="before")).hosted_clusters == (cluster,)


@pytest.mark.parametrize(
    ("changes", "place", "rule"),
    [
        ({"backupKey": BEFORE.replace("before", "etcd")}, "backupKey", "backup-key-is-active"),
        (
            {"backupKey": BEFORE.replace("kv-before", "KV-etcd").replace("etcd/", "other/"), **GROUP},
            "backupKeyVaultResourceGroup",
            "backup-key-group-mismatch",
        ),
        ({"activeKey": HSM, "keyVaultType": "HSM"}, "keyVaultType", "choice"),
    ],
)
def test_one_key_or_vault_is_not_named_twice(changes: dict[str, str], place: str, rule: str) -> None:
    """A type that is refused itself decides nothing."""
    assert refusals(with_kms(**changes)) == [(f"{KMS}.{place}", rule)]


@pytest.mark.parametrize(
    ("changes", "place", "reason"),
    [
        ({"activeKey": HSM, "keyVaultType": "KeyVault"}, "activeKey", "vaults of this cloud are at vault.azure.net"),
        ({"keyVaultType": "ManagedHSM"}, "activeKey", "managed HSMs of this cloud are at managedhsm.azure.net"),
        ({"backupKey": HSM}, "backupKey", "vaults of this cloud are at vault.azure.net"),
        ({"activeKey": HSM, "backupKey": BEFORE}, "backupKey", "managed HSMs of this cloud are at managedhsm"),
    ],
)
def test_both_keys_are_in_the_service_of_the_active_ones_url(changes: dict[str, str], place: str, reason: str) -> None:
    [cluster] = load(with_kms(activeKey=HSM)).hosted_clusters
    assert cluster.kms is not None
    assert cluster.kms.is_managed_hsm
    assert refusals(with_kms(**changes)) == [(f"{KMS}.{place}", "kms-key")]
    assert reason in report(with_kms(**changes))


def test_the_local_cloud_has_no_managed_hsm() -> None:
    config = {
        **with_kms(activeKey=HSM),
        "cloud": "local",
        "tenantId": LOCAL_TENANT_ID,
        "subscriptionId": LOCAL_SUBSCRIPTION_ID,
    }
    place = (f"{KMS}.keyVaultType", "managed-hsm-on-local-cloud")

    assert place in refusals(config, local=LOCAL)
