"""The keys of a hosted cluster: that of its tokens with their issuer, that of etcd, and the Secrets of both.

An issuer that the stack makes is a storage account with documents, and the keys that these publish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pulumi_azure_native import storage

from components.azure.context import ClusterContext
from components.azure.providers import ClusterConnection
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from components.plugin.resources import (
    EncryptionKey,
    EncryptionKeySecret,
    IssuerDocuments,
    SigningKey,
    SigningKeySecret,
)
from identity import resource_types
from identity.naming import (
    DEPLOYER_COMPONENT,
    encryption_key_vault_secret,
    signing_key_vault_secret,
)
from identity.plugin_schema import KeySecretInputs
from identity.roles import STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE
from identity.settings import SigningKeySettings


@dataclass(frozen=True, kw_only=True)
class SigningKeyFacts:
    """The key that signs: its secret in the vault, its id, and the public halves of the other keys (PEM)."""

    secret_name: str
    key_id: pulumi.Output[str]
    old_public_keys: tuple[pulumi.Output[str], ...]
    resources: tuple[pulumi.Resource, ...]


class OidcIssuer(pulumi.ComponentResource):
    """A public container with the issuer's documents, as `ccoctl azure create-oidc-issuer` makes it, without an account
    key: shared keys are off, and the deployer writes with a role of its own.

    `account_name` is that of the container as well. Outputs: `signing_key`, whose secret and resources are known before
    they exist.
    """

    def __init__(
        self,
        name: str,
        context: ClusterContext,
        wanted: SigningKeySettings,
        account_name: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(resource_types.OIDC_ISSUER, name, None, opts)
        settings, cluster, deployer = context.settings, context.cluster, context.deployer
        account = storage.StorageAccount(
            f"{name}-account",
            account_name=account_name,
            resource_group_name=settings.resource_group,
            location=settings.location,
            tags=settings.tags,
            kind=storage.Kind.STORAGE_V2,
            sku=storage.SkuArgs(name=storage.SkuName.STANDARD_LRS),
            # Entra ID reads the documents as anybody does.
            allow_blob_public_access=True,
            allow_shared_key_access=False,
            minimum_tls_version=storage.MinimumTlsVersion.TLS1_2,
            opts=pulumi.ResourceOptions(parent=self, protect=settings.protect),
        )
        container = storage.BlobContainer(
            f"{name}-container",
            container_name=account_name,
            account_name=account_name,
            resource_group_name=settings.resource_group,
            public_access=storage.PublicAccess.CONTAINER,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[account]),
        )
        account_id = settings.issuer_account_id(account_name)
        role = RoleGrants(
            f"{name}-deployer",
            RoleGrantsArgs(
                infra_id=account_name,
                component=DEPLOYER_COMPONENT,
                role=STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE,
                scopes={"account": account_id},
                subscription_id=settings.subscription_id,
                principal_id=deployer.object_id,
                deployer=deployer,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[account]),
        )
        keys = {
            generation: signing_key(
                f"{name}-key-{generation}",
                self,
                context,
                secret_name=signing_key_vault_secret(cluster.name, generation),
                source="made",
            )
            for generation in wanted.published
        }
        documents = IssuerDocuments(
            f"{name}-documents",
            cloud=settings.cloud.name,
            tenantId=settings.tenant_id,
            issuer=cluster.issuer_url,
            keys=[{"generation": generation, "jwk": key.outputs["jwk"]} for generation, key in keys.items()],
            signing=wanted.signing,
            leaked=wanted.leaked,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[container, role]),
        )
        self.signing_key = SigningKeyFacts(
            secret_name=signing_key_vault_secret(cluster.name, wanted.signing),
            key_id=keys[wanted.signing].outputs["keyId"],
            old_public_keys=tuple(
                key.outputs["publicKeyPem"] for number, key in keys.items() if number != wanted.signing
            ),
            # A key is published before it signs.
            resources=(documents,),
        )
        self.register_outputs({"key_id": self.signing_key.key_id, "secret_name": self.signing_key.secret_name})


def signing_key(
    name: str,
    parent: pulumi.Resource,
    context: ClusterContext,
    *,
    secret_name: str,
    source: Literal["made", "file", "vault"],
    file: str | None = None,
    file_key_id: str | None = None,
) -> SigningKey:
    """A signing key in the stack's vault."""
    return SigningKey(
        name,
        **context.in_vault(secret_name),
        source=source,
        file=file,
        fileKeyId=file_key_id,
        tags=context.settings.tags,
        ownerId=context.stack_owner,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=context.store.vault),
    )


def cluster_signing_key(
    name: str, parent: pulumi.Resource, context: ClusterContext, file_key_id: str | None
) -> SigningKeyFacts | None:
    """Make the issuer with its keys, or take the key of an existing one; None if the stack knows of none.

    `file_key_id` is the id of the key in the file that the settings name.
    """
    cluster = context.cluster
    wanted, secret_name = cluster.signing_key, cluster.signing_key_vault_secret
    if wanted is None or secret_name is None:
        return None
    if cluster.issuer_name is not None:
        opts = pulumi.ResourceOptions(parent=parent)
        return OidcIssuer(f"{name}-issuer", context, wanted, cluster.issuer_name, opts).signing_key
    key = signing_key(
        f"{name}-signing-key",
        parent,
        context,
        secret_name=secret_name,
        source="vault" if wanted.file is None else "file",
        file=wanted.file,
        file_key_id=file_key_id,
    )
    return SigningKeyFacts(secret_name=secret_name, key_id=key.outputs["keyId"], old_public_keys=(), resources=(key,))


def signing_key_secret(
    name: str, parent: pulumi.Resource, context: ClusterContext, key: SigningKeyFacts | None
) -> Sequence[pulumi.Resource]:
    """The Secret that `spec.serviceAccountSigningKey` names, after what publishes its key; none without a key."""
    if key is None or context.connection is None:
        return ()
    inputs = _key_secret(context, context.connection, context.cluster.signing_key_secret, key.secret_name, key.key_id)
    opts = pulumi.ResourceOptions(parent=parent, depends_on=list(key.resources))
    return [SigningKeySecret(name, opts, **inputs, oldPublicKeys=key.old_public_keys)]


def names_encryption_key(manifest: Mapping[str, Any] | None, secret: str | None) -> bool:
    """Whether the HostedCluster encrypts etcd with the key in the Secret of that name: the user may name another."""
    encryption = ((manifest or {}).get("spec") or {}).get("secretEncryption") or {}
    named = ((encryption.get("aescbc") or {}).get("activeKey") or {}).get("name")
    return secret is not None and named == secret


def encryption_key_secret(name: str, parent: pulumi.Resource, context: ClusterContext) -> list[pulumi.Resource]:
    """The Secret with the key that encrypts etcd, after its key; none if the stack makes none."""
    secret, connection = context.cluster.encryption_key_secret, context.connection
    if secret is None or connection is None:
        return []
    secret_name = encryption_key_vault_secret(context.cluster.name)
    key = EncryptionKey(
        f"{name}-encryption-key",
        **context.in_vault(secret_name),
        tags=context.settings.tags,
        ownerId=context.stack_owner,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=context.store.vault),
    )
    inputs = _key_secret(context, connection, secret, secret_name, key.outputs["keyId"])
    opts = pulumi.ResourceOptions(parent=parent, depends_on=[key])
    return [EncryptionKeySecret(f"{name}-encryption-key-secret", opts, **inputs)]


def _key_secret(
    context: ClusterContext, connection: ClusterConnection, name: str, secret_name: str, key_id: pulumi.Input[str]
) -> KeySecretInputs[pulumi.Input[str]]:
    """The inputs of the Secret `name` beside the HostedCluster, with the key of the vault's `secret_name`."""
    return {
        **context.in_vault(secret_name),
        "kubeconfig": connection.kubeconfig,
        "context": connection.context,
        "clusterId": connection.cluster_id,
        "namespace": context.cluster.namespace,
        "name": name,
        "keyId": key_id,
    }
