"""The rules of the encryption of a hosted cluster's etcd; see `stack.py`."""

from __future__ import annotations

from identity.clouds import LOCAL_CLOUD
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.invalid import apply
from identity.settings.schema.kms import KmsSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace


def validate_kms(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the encryption of the hosted cluster at `place`."""
    if cluster.kms is not None:
        rules = (_backup_key_is_another, _one_vault_is_in_one_group, _local_cloud_has_no_hsm)
        apply(rules, settings, cluster.kms, place / "kms")


def _backup_key_is_another(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.backup_key == kms.active_key:
        at = place / "backupKey"
        at.refuse(
            {},
            rule="backup-key-is-active",
            accepted=f"the key that encrypted etcd before {place / 'activeKey'}, or nothing",
            fix=f"{at.to_remove()}, or {at.to_set('<url>')}",
        )


def _one_vault_is_in_one_group(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.backup_key is None or kms.backup_key.key_vault_name.lower() != kms.active_key.key_vault_name.lower():
        return
    if kms.backup_key_vault_resource_group.lower() != kms.key_vault_resource_group.lower():
        at = place / "backupKeyVaultResourceGroup"
        at.refuse(
            kms.backup_key_vault_resource_group,
            rule="backup-key-group-mismatch",
            accepted=f"the group of {place / 'keyVaultResourceGroup'}, or nothing: both keys are in "
            f"{kms.active_key.key_vault_name}",
        )


def _local_cloud_has_no_hsm(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.is_managed_hsm and settings.cloud.name == LOCAL_CLOUD:
        at = place / "keyVaultType"
        at.refuse(
            kms.key_vault_type,
            rule="managed-hsm-on-local-cloud",
            accepted="KeyVault with cloud: local, which has no managed HSM",
            fix=(place / "activeKey").to_set("<url>"),
        )
