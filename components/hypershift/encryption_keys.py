"""The keys that encrypt a hosted cluster's etcd, for the outputs: the next run compares its own with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import pulumi

from components.hypershift.hosted_cluster_spec import kms_key_spec
from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import Scope
from identity.outputs import EncryptionKeys
from identity.settings import HostedClusterSettings, KmsKey

# contrib/managed-azure/setup_etcd_managed_hsm.sh:100-104 (openshift/hypershift at 3ee9615)
_HSM_ROLE: Final = "Managed HSM Crypto User"


def encryption_keys(
    cluster: HostedClusterSettings, roles: str, principals: Mapping[str, pulumi.Input[str]]
) -> EncryptionKeys[pulumi.Input[str | None]] | None:
    """The keys, None without KMS. `principals` are the object ids of the identities by field, `roles` is the setting.

    A managed HSM assigns its roles in its own data plane, which neither ARM nor azure-native reaches. So the outputs
    have the commands.
    """
    kms = cluster.kms
    if kms is None:
        return None
    found: EncryptionKeys[pulumi.Input[str | None]] = {"activeKey": kms_key_spec(kms.active_key)}
    keys = [kms.active_key]
    if kms.backup_key is not None:
        found["backupKey"] = kms_key_spec(kms.backup_key)
        keys.append(kms.backup_key)
    if kms.is_managed_hsm:
        fields = [row.field for row in CONTROL_PLANE if Scope.KMS_VAULT in row.grant(roles).scopes]
        found["roleCommands"] = [
            pulumi.Output.from_input(principals[field]).apply(partial(_role_command, key))
            for field in fields
            for key in keys
        ]
    return found


def _role_command(key: KmsKey, principal_id: str) -> str:
    return (
        f'az keyvault role assignment create --hsm-name {key.key_vault_name} --role "{_HSM_ROLE}" '
        f"--scope /keys/{key.key_name} --assignee-object-id {principal_id} --assignee-principal-type ServicePrincipal"
    )
