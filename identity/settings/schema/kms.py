"""The keys of the encryption of etcd in Azure: `spec.secretEncryption.kms.azure` of a HostedCluster.

Source: openshift/hypershift at 3ee9615, `AzureKMSSpec` in api/hypershift/v1beta1/azure.go:917-1002.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo

from identity.clouds import Cloud
from identity.settings.schema import types
from identity.settings.schema.base import FilledIn, Model
from identity.settings.schema.schema_node import form, refused


class KmsKey(Model):
    """One version of a key that encrypts etcd."""

    key_vault_name: types.VaultName = Field(description="Vault, or managed HSM, of the key.")
    key_name: types.KeyName = Field(description="Name of the key; it exists already.")
    key_version: types.KeyVersion = Field(description="Version of the key.")


KeyVaultType: TypeAlias = Literal["KeyVault", "ManagedHSM"]
_KEY_URL: Final = re.compile(r"https://([^/.]+)\.([^/]+)/keys/([^/]+)/([^/]+)/?")


def _take_url_apart(key: Any, info: ValidationInfo) -> Any:
    """Parse a key's URL; the validation's context is the stack's cloud, or another value that was refused."""
    if not isinstance(key, str):
        return key
    match = _KEY_URL.fullmatch(key)
    if match is None:
        raise refused("")
    vault, suffix, name, version = match.groups()
    if isinstance(info.context, Cloud):
        # Beside a refused key it is validated alone.
        _check_suffix(suffix, info.context, (getattr(info, "data", None) or {}).get("key_vault_type"))
    try:
        return KmsKey.model_validate({"keyVaultName": vault, "keyName": name, "keyVersion": version})
    except ValidationError as error:
        part = error.errors()[0]
        raise refused(f"{part['loc'][0]}: {part['ctx']['reason'] or 'not a valid value'}") from None


def _check_suffix(suffix: str, cloud: Cloud, key_vault_type: Any) -> None:
    """Refuse the URL of another cloud, or of the other service unless the type was refused itself."""
    services = {"KeyVault": ("vaults", cloud.vault_suffix), "ManagedHSM": ("managed HSMs", cloud.managed_hsm_suffix)}
    if isinstance(key_vault_type, str) and suffix != services[key_vault_type][1]:
        what, where = services[key_vault_type]
        raise refused(f"the {what} of this cloud are at {where}")


_KmsKeyOrUrl: TypeAlias = Annotated[
    KmsKey,
    BeforeValidator(_take_url_apart),
    form("kms-key", lambda key: key),
]


class KmsSettings(Model):
    """Encryption of etcd."""

    # Before the keys: it decides which URLs they may be.
    key_vault_type: Annotated[
        KeyVaultType, FilledIn("`ManagedHSM` if `activeKey` is the URL of a key in one, otherwise `KeyVault`")
    ] = Field(
        description="Which service has the keys; a HostedCluster never changes it. In a managed HSM the deployer "
        "needs a role of the HSM's own (`docs/guides/operations.md`)."
    )
    active_key: _KmsKeyOrUrl = Field(description="Key that encrypts etcd, as its URL or as a mapping.")
    backup_key: _KmsKeyOrUrl | None = Field(
        None,
        description="Key that encrypted etcd before, until HyperShift has re-encrypted everything "
        "(`docs/guides/operations.md`).",
    )
    key_vault_resource_group: Annotated[types.ResourceGroup, FilledIn("the stack's `resourceGroup`")] = Field(
        description="Resource group of the active key's vault."
    )
    backup_key_vault_resource_group: Annotated[types.ResourceGroup, FilledIn("`keyVaultResourceGroup`")] = Field(
        description="Resource group of the backup key's vault."
    )
    key_vault_access: Literal["Public", "Private"] | None = Field(
        None,
        description="How kube-apiserver reaches the keys: `Private` is through the private router, to a private "
        "endpoint of the vault.",
    )

    @property
    def vaults(self) -> dict[str, str]:
        """The vaults of both keys, each with its resource group."""
        vaults = {self.active_key.key_vault_name: self.key_vault_resource_group}
        if self.backup_key is not None:
            vaults.setdefault(self.backup_key.key_vault_name, self.backup_key_vault_resource_group)
        return vaults

    @property
    def keys(self) -> tuple[KmsKey, ...]:
        """The active key, and the backup key if there is one."""
        return (self.active_key,) if self.backup_key is None else (self.active_key, self.backup_key)

    def place_of(self, vault: str, key: str) -> str:
        """Where the KMS identity has its role for a key: in a vault, or on a key of a managed HSM, `<HSM>/keys/<key>`.

        HyperShift's script for an HSM grants one key (`contrib/managed-azure/setup_etcd_managed_hsm.sh`).
        """
        return f"{vault}/keys/{key}" if self.is_managed_hsm else vault

    @property
    def is_managed_hsm(self) -> bool:
        """Whether the keys are in a managed HSM, whose roles are assigned in the HSM itself and not by ARM."""
        return self.key_vault_type == "ManagedHSM"


def key_vault_type_of(key: object) -> KeyVaultType:
    """The service of the configured key, by its URL."""
    match = _KEY_URL.fullmatch(key) if isinstance(key, str) else None
    return "ManagedHSM" if match is not None and match[2].startswith("managedhsm.") else "KeyVault"
