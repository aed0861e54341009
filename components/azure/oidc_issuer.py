"""The OIDC issuer of a hosted cluster: its storage account, its documents, and the keys that it publishes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pulumi_azure_native import storage

from components.azure.credential_secret import CredentialStore
from components.azure.providers import Deployer
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from components.plugin.resources import IssuerDocuments, SigningKey
from identity import resource_types
from identity.naming import DEPLOYER_COMPONENT, signing_key_vault_secret, storage_account_id
from identity.roles import STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE
from identity.settings import HostedClusterSettings, Settings, SigningKeySettings


@dataclass(frozen=True, kw_only=True)
class SigningKeyFacts:
    """The key that signs: its secret in the vault, its id, and the public halves of the other keys (PEM)."""

    secret_name: str
    key_id: pulumi.Output[str]
    old_public_keys: tuple[pulumi.Output[str], ...]
    resources: tuple[pulumi.Resource, ...]


@dataclass(frozen=True, kw_only=True)
class OidcIssuerArgs:
    """Inputs of `OidcIssuer`. `name` is that of the account and of its container.

    `stack_owner` is the stack's owner id.
    """

    settings: Settings
    cluster: HostedClusterSettings
    key: SigningKeySettings
    name: str
    store: CredentialStore
    deployer: Deployer
    stack_owner: pulumi.Input[str] | None


class OidcIssuer(pulumi.ComponentResource):
    """A public container with the issuer's documents, as `ccoctl azure create-oidc-issuer` makes it, without an account
    key: shared keys are off, and the deployer writes with a role of its own.

    Outputs: `signing_key`, whose secret and resources are known before they exist.
    """

    def __init__(self, name: str, args: OidcIssuerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(resource_types.OIDC_ISSUER, name, None, opts)
        settings, cluster = args.settings, args.cluster
        account = storage.StorageAccount(
            f"{name}-account",
            account_name=args.name,
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
            container_name=args.name,
            account_name=args.name,
            resource_group_name=settings.resource_group,
            public_access=storage.PublicAccess.CONTAINER,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[account]),
        )
        account_id = storage_account_id(settings.subscription_id, settings.resource_group, args.name)
        role = RoleGrants(
            f"{name}-deployer",
            RoleGrantsArgs(
                infra_id=args.name,
                component=DEPLOYER_COMPONENT,
                role=STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE,
                scopes={"account": account_id},
                subscription_id=settings.subscription_id,
                principal_id=args.deployer.object_id,
                deployer=args.deployer,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[account]),
        )
        keys = {
            generation: signing_key(
                f"{name}-key-{generation}",
                settings,
                args.store,
                args.stack_owner,
                secret_name=signing_key_vault_secret(cluster.name, generation),
                source="made",
                opts=pulumi.ResourceOptions(parent=self),
            )
            for generation in args.key.published
        }
        documents = IssuerDocuments(
            f"{name}-documents",
            cloud=settings.cloud.name,
            tenantId=settings.tenant_id,
            issuer=cluster.issuer_url,
            keys=[{"generation": generation, "jwk": key.outputs["jwk"]} for generation, key in keys.items()],
            signing=args.key.signing,
            leaked=args.key.leaked,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[container, role]),
        )
        self.signing_key = SigningKeyFacts(
            secret_name=signing_key_vault_secret(cluster.name, args.key.signing),
            key_id=keys[args.key.signing].outputs["keyId"],
            old_public_keys=tuple(
                key.outputs["publicKeyPem"] for number, key in keys.items() if number != args.key.signing
            ),
            # A key is published before it signs.
            resources=(documents,),
        )
        self.register_outputs({"key_id": self.signing_key.key_id, "secret_name": self.signing_key.secret_name})


def signing_key(
    name: str,
    settings: Settings,
    store: CredentialStore,
    stack_owner: pulumi.Input[str] | None,
    *,
    secret_name: str,
    source: Literal["made", "file", "vault"],
    file: str | None = None,
    file_key_id: str | None = None,
    opts: pulumi.ResourceOptions,
) -> SigningKey:
    """A signing key in the stack's vault."""
    return SigningKey(
        name,
        cloud=settings.cloud.name,
        tenantId=settings.tenant_id,
        vaultId=store.vault_id,
        secretName=secret_name,
        source=source,
        file=file,
        fileKeyId=file_key_id,
        tags=settings.tags,
        ownerId=stack_owner,
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=store.vault)),
    )
