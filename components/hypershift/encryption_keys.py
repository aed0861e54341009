"""The keys that encrypt a hosted cluster's etcd, for the outputs: the next run compares its own with them."""

from __future__ import annotations

import pulumi

from components.hypershift.hosted_cluster_spec import kms_key_spec
from identity.outputs import EncryptionKeys
from identity.settings import HostedClusterSettings


def encryption_keys(cluster: HostedClusterSettings) -> EncryptionKeys[pulumi.Input[str | None]] | None:
    """The keys, None without KMS."""
    kms = cluster.kms
    if kms is None:
        return None
    found: EncryptionKeys[pulumi.Input[str | None]] = {"activeKey": kms_key_spec(kms.active_key)}
    if kms.backup_key is not None:
        found["backupKey"] = kms_key_spec(kms.backup_key)
    return found
