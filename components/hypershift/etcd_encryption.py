"""The key that encrypts etcd in a HostedCluster that the stack writes, and the Secret in which HyperShift reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.hypershift.service_account_key import SigningKeyArgs
from components.plugin.resources import EncryptionKey, EncryptionKeySecret
from identity.naming import encryption_key_vault_secret


def names_encryption_key(manifest: Mapping[str, Any] | None, secret: str | None) -> bool:
    """Whether the HostedCluster encrypts etcd with the key in the Secret of that name: the user may name another."""
    encryption = ((manifest or {}).get("spec") or {}).get("secretEncryption") or {}
    named = ((encryption.get("aescbc") or {}).get("activeKey") or {}).get("name")
    return secret is not None and named == secret


def encryption_key_secret(
    name: str, parent: pulumi.Resource, args: SigningKeyArgs, manifest: Mapping[str, Any]
) -> list[pulumi.Resource]:
    """The Secret, after its key; none if the HostedCluster names no key of the stack's."""
    settings, cluster, connection = args.settings, args.cluster, args.connection
    secret = cluster.encryption_key_secret
    if secret is None or connection is None or not names_encryption_key(manifest, secret):
        return []
    secret_name = encryption_key_vault_secret(cluster.name)
    key = EncryptionKey(
        f"{name}-encryption-key",
        cloud=settings.cloud.name,
        tenantId=settings.tenant_id,
        vaultId=args.store.vault_id,
        secretName=secret_name,
        tags=settings.tags,
        ownerId=args.stack_owner,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=args.store.vault),
    )
    of_key = args.key_secret(connection, name=secret, secret_name=secret_name, key_id=key.outputs["keyId"])
    opts = pulumi.ResourceOptions(parent=parent, depends_on=[key])
    return [EncryptionKeySecret(f"{name}-encryption-key-secret", opts, **of_key)]
