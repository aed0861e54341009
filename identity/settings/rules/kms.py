"""What must fit together in the encryption of a hosted cluster's etcd; see `stack.py`."""

from __future__ import annotations

from contextlib import suppress

from identity.clouds import LOCAL_CLOUD
from identity.settings.schema.invalid import DependsOnInvalidError
from identity.settings.schema.kms import KmsSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import Place, ProblemReport, path_of, to_remove, to_set


def validate_kms(settings: Settings, kms: KmsSettings | None, place: Place, report: ProblemReport) -> None:
    """Apply every rule to the encryption at `place`."""
    if kms is None:
        return
    with suppress(DependsOnInvalidError):
        _backup_key_is_another(kms, place, report)
    with suppress(DependsOnInvalidError):
        _one_vault_is_in_one_group(kms, place, report)
    with suppress(DependsOnInvalidError):
        _local_cloud_has_no_hsm(settings, kms, place, report)


def _backup_key_is_another(kms: KmsSettings, place: Place, report: ProblemReport) -> None:
    if kms.backup_key == kms.active_key:
        at = (*place, "backupKey")
        report.refuse(
            at,
            {},
            rule="backup-key-is-active",
            accepted=f"the key that encrypted etcd before {path_of((*place, 'activeKey'))}, or nothing",
            fix=f"{to_remove(at)}, or {to_set(at, '<url>')}",
        )


def _one_vault_is_in_one_group(kms: KmsSettings, place: Place, report: ProblemReport) -> None:
    if kms.backup_key is None or kms.backup_key.key_vault_name.lower() != kms.active_key.key_vault_name.lower():
        return
    if kms.backup_key_vault_resource_group.lower() != kms.key_vault_resource_group.lower():
        at = (*place, "backupKeyVaultResourceGroup")
        report.refuse(
            at,
            kms.backup_key_vault_resource_group,
            rule="backup-key-group-mismatch",
            accepted=f"the group of {path_of((*place, 'keyVaultResourceGroup'))}, or nothing: both keys are in "
            f"{kms.active_key.key_vault_name}",
            fix=to_remove(at),
        )


def _local_cloud_has_no_hsm(settings: Settings, kms: KmsSettings, place: Place, report: ProblemReport) -> None:
    if kms.is_managed_hsm and settings.cloud.name == LOCAL_CLOUD:
        at = (*place, "keyVaultType")
        report.refuse(
            at,
            kms.key_vault_type,
            rule="managed-hsm-on-local-cloud",
            accepted="KeyVault with cloud: local, which has no managed HSM",
            fix=to_set((*place, "activeKey"), "<url>"),
        )
