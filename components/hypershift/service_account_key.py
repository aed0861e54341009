"""The signing key of a hosted cluster: its issuer, if the stack makes it, and the Secret that HyperShift reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.azure.credential_secret import CredentialStore
from components.azure.oidc_issuer import OidcIssuer, OidcIssuerArgs, SigningKeyFacts, signing_key
from components.azure.providers import ClusterConnection, Deployer
from components.plugin.resources import SigningKeySecret
from identity.plugin_schema import KeySecretInputs
from identity.settings import HostedClusterSettings, Settings


@dataclass(frozen=True, kw_only=True)
class SigningKeyArgs:
    """Inputs of the functions below, which a hosted cluster has among its own.

    `signing_key_file_id` is the id of the signing key in the file that the settings name; `connection` leads to the
    management cluster, None if the stack has no object there; `stack_owner` is the stack's owner id (None in a run that
    only renews).
    """

    settings: Settings
    cluster: HostedClusterSettings
    store: CredentialStore
    deployer: Deployer
    signing_key_file_id: str | None
    connection: ClusterConnection | None
    stack_owner: pulumi.Input[str] | None

    def key_secret(
        self, connection: ClusterConnection, *, name: str, secret_name: str, key_id: pulumi.Input[str]
    ) -> KeySecretInputs[pulumi.Input[str]]:
        """The inputs of the Secret `name` beside the HostedCluster, with the key of the vault's `secret_name`."""
        return {
            "kubeconfig": connection.kubeconfig,
            "context": connection.context,
            "clusterId": connection.cluster_id,
            "namespace": self.cluster.namespace,
            "name": name,
            "cloud": self.settings.cloud.name,
            "tenantId": self.settings.tenant_id,
            "vaultId": self.store.vault_id,
            "secretName": secret_name,
            "keyId": key_id,
        }


def cluster_signing_key(name: str, parent: pulumi.Resource, args: SigningKeyArgs) -> SigningKeyFacts | None:
    """Make the issuer with its keys, or take the key of an existing one; None if the stack knows of none."""
    cluster, key_settings, secret_name = args.cluster, args.cluster.signing_key, args.cluster.signing_key_vault_secret
    options = pulumi.ResourceOptions(parent=parent)
    if key_settings is None or secret_name is None:
        return None
    if cluster.issuer_name is not None:
        issuer = OidcIssuer(
            f"{name}-issuer",
            OidcIssuerArgs(
                settings=args.settings,
                cluster=cluster,
                key=key_settings,
                name=cluster.issuer_name,
                store=args.store,
                deployer=args.deployer,
                stack_owner=args.stack_owner,
            ),
            options,
        )
        return issuer.signing_key
    key = signing_key(
        f"{name}-signing-key",
        args.settings,
        args.store,
        args.stack_owner,
        secret_name=secret_name,
        source="vault" if key_settings.file is None else "file",
        file=key_settings.file,
        file_key_id=args.signing_key_file_id,
        opts=options,
    )
    return SigningKeyFacts(secret_name=secret_name, key_id=key.outputs["keyId"], old_public_keys=(), resources=(key,))


def signing_key_secret(
    name: str, parent: pulumi.Resource, args: SigningKeyArgs, key: SigningKeyFacts | None
) -> Sequence[pulumi.Resource]:
    """The Secret that `spec.serviceAccountSigningKey` names, after what publishes its key; none without a key."""
    if key is None or args.connection is None:
        return ()
    of_key = args.key_secret(
        args.connection, name=args.cluster.signing_key_secret, secret_name=key.secret_name, key_id=key.key_id
    )
    opts = pulumi.ResourceOptions(parent=parent, depends_on=list(key.resources))
    return [SigningKeySecret(name, opts, **of_key, oldPublicKeys=key.old_public_keys)]
