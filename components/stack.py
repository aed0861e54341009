"""The whole stack: vault and key-vault-user, its own or the shared stack's, and every hosted cluster."""

from __future__ import annotations

import pulumi

from components.azure.credential_secret import CredentialStore
from components.azure.key_vault_user import ExistingIdentity, KeyVaultUser, KeyVaultUserArgs, NewIdentity
from components.azure.management_cluster import AddOnIdentity, ManagementCluster
from components.azure.providers import Providers, management_cluster_id
from components.azure.vault import Vault, VaultArgs
from components.hypershift.base_manifest import base_manifest
from components.hypershift.hosted_cluster import HostedCluster, HostedClusterArgs, Leaf
from components.plugin.resources import StackOwner
from components.preflight.preflight import Preflight
from components.preflight.prerequisites import Prerequisites
from identity.outputs import HostedClusterOutput, StackOutputs, delivered
from identity.settings import HostedClusterSettings, Settings
from identity.settings.rules.credential_loss import addresses, reader_address


class IdentityStack:
    """Builds the top-level components of the stack.

    `providers` include the Kubernetes provider if the stack has an object in the cluster. `cluster` is the management
    cluster that this stack makes; None if it exists already. `owner` is None in a run that does not change the stack's
    owner id and the tags.
    """

    def __init__(
        self,
        settings: Settings,
        preflight: Preflight,
        providers: Providers,
        cluster: ManagementCluster | None,
        owner: StackOwner | None,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._options = providers.options()
        self._owner = owner
        self._commit = preflight.commit
        self._attach_command: pulumi.Output[str] | None = None
        self._reader: pulumi.Output[str] | None = None
        prerequisites = preflight.prerequisites
        self._store = preflight.shared or self._own_store(prerequisites)
        self.hosted_clusters = {
            cluster.name: HostedCluster(
                cluster.name,
                HostedClusterArgs(
                    settings=settings,
                    cluster=cluster,
                    store=self._store,
                    deployer=preflight.deployer,
                    imported=prerequisites.imported[cluster.name],
                    manifest=prerequisites.manifests.get(cluster.name),
                    delivered=delivered(preflight.last, cluster.name),
                    connection=providers.connection,
                    handed_over=preflight.handed_over.get(cluster.name),
                    signing_key_file_id=prerequisites.signing_key_files.get(cluster.name),
                    stack_owner=self._owner_id,
                ),
                self._options,
            )
            for cluster in settings.hosted_clusters
        }

    def outputs(self) -> StackOutputs[Leaf]:
        """The stack's outputs. Stacks that share its vault read some of them (`preflight/shared_stack.py`)."""
        outputs: StackOutputs[Leaf] = {
            "tenantId": self._settings.tenant_id,
            "clusterSide": self._settings.cluster_side,
            "tagNames": sorted(self._settings.tags),
            "hostedClusters": {cluster.name: self._exported(cluster) for cluster in self._settings.hosted_clusters},
        }
        if self._store.vault_id:
            outputs["keyVaultId"] = self._store.vault_id
            outputs["keyVaultName"] = self._store.vault_name
            outputs["keyVaultUri"] = self._store.vault_uri
        if self._store.key_vault_user_client_id:
            outputs["keyVaultUserClientId"] = self._store.key_vault_user_client_id
        if self._owner is not None:
            outputs["ownerId"] = self._owner.outputs["ownerId"]
        if self._settings.management_cluster is not None:
            outputs["managementClusterId"] = management_cluster_id(self._settings, self._settings.management_cluster)
        if self._attach_command is not None:
            outputs["keyVaultUserAttachCommand"] = self._attach_command
        if self._reader is not None:
            outputs["keyVaultUserObjectId"] = self._reader
        if (in_use := reader_address(self._settings)) is not None:
            outputs["keyVaultUserInUse"] = in_use
        if self._commit is not None:
            outputs["commit"] = self._commit
        return outputs

    @property
    def _owner_id(self) -> pulumi.Output[str] | None:
        return None if self._owner is None else self._owner.outputs["ownerId"]

    def _exported(self, settings: HostedClusterSettings) -> HostedClusterOutput[Leaf]:
        cluster = self.hosted_clusters[settings.name]
        exported: HostedClusterOutput[Leaf] = {
            "namespace": cluster.namespace,
            "controlPlane": cluster.control_plane,
            "dataPlane": cluster.data_plane,
            "hostedClusterSpec": cluster.spec,
            "hostedClusterBase": base_manifest(settings),
            "dnsZoneResourceGroup": settings.dns_zone_resource_group,
            "credentialsInUse": addresses(self._settings, settings, self._store.vault_id),
        }
        if cluster.encryption_keys is not None:
            exported["encryptionKeys"] = cluster.encryption_keys
        if cluster.encryption_key_secret is not None:
            exported["encryptionKeySecret"] = cluster.encryption_key_secret
        if settings.external_dns_domain is not None:
            exported["externalDnsDomain"] = settings.external_dns_domain
        if cluster.managed_identities:
            exported["managedIdentities"] = cluster.managed_identities
        return exported

    def _own_store(self, prerequisites: Prerequisites) -> CredentialStore:
        if self._settings.vault is None:
            return CredentialStore(vault_id="", vault_uri="", key_vault_user_client_id="")
        vault = Vault("vault", VaultArgs(settings=self._settings, vault=self._settings.vault), self._options)
        if not self._settings.has_key_vault_user:
            return CredentialStore(
                vault_id=vault.vault_id, vault_uri=vault.vault_uri, key_vault_user_client_id="", vault=[vault]
            )
        key_vault_user = KeyVaultUser(
            "key-vault-user",
            KeyVaultUserArgs(
                identity=self._key_vault_user_identity(prerequisites),
                vault=vault,
                settings=self._settings,
                stack_owner=self._owner_id,
            ),
            self._options,
        )
        self._attach_command = key_vault_user.attach_command
        if self._settings.key_vault_user_scope == "secrets":
            self._reader = key_vault_user.principal_id
        return CredentialStore(
            vault_id=vault.vault_id,
            vault_uri=vault.vault_uri,
            key_vault_user_client_id=key_vault_user.client_id,
            reader=self._reader,
            vault=[vault],
            key_vault_user=[key_vault_user],
        )

    def _key_vault_user_identity(self, prerequisites: Prerequisites) -> ExistingIdentity | AddOnIdentity | NewIdentity:
        user = self._settings.key_vault_user
        if user.name is not None:
            return NewIdentity(
                name=user.name,
                node_resource_group=(
                    prerequisites.node_resource_group if self._cluster is None else self._cluster.node_resource_group
                ),
            )
        if user.client_id is not None and user.object_id is not None:
            return ExistingIdentity(client_id=user.client_id, object_id=user.object_id)
        if self._cluster is not None:
            return self._cluster.add_on
        if prerequisites.add_on_identity is None:
            raise AssertionError("the settings ask for the add-on's identity, and look_up demands it then")
        return prerequisites.add_on_identity
