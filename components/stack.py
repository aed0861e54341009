"""The whole stack: one vault, its reader, and every hosted cluster."""

from __future__ import annotations

from typing import Any

from components.hosted_cluster import HostedCluster, HostedClusterArgs
from components.imported_credential import Principal
from components.key_vault_user import KeyVaultUser, KeyVaultUserArgs, NewIdentity
from components.prerequisites import Prerequisites
from components.providers import Deployer, Providers
from components.vault import Vault, VaultArgs
from identity.settings import Settings


class IdentityStack:
    """Builds the components. They sit at the top of the stack, so this is no component itself."""

    def __init__(
        self, settings: Settings, providers: Providers, deployer: Deployer, prerequisites: Prerequisites
    ) -> None:
        self._settings = settings
        self._options = providers.options()
        self.vault = self._vault()
        self.key_vault_user = self._key_vault_user(prerequisites)
        self.hosted_clusters = {
            cluster.name: HostedCluster(
                cluster.name,
                HostedClusterArgs(
                    settings=settings,
                    cluster=cluster,
                    vault=self.vault,
                    key_vault_user=self.key_vault_user,
                    deployer=deployer.object_id,
                    imported=prerequisites.imported_of(cluster.name),
                ),
                self._options,
            )
            for cluster in settings.hosted_clusters
        }

    def outputs(self) -> dict[str, Any]:
        """What the stack exports; nothing of it is secret."""
        outputs = {
            "keyVaultName": self.vault.vault_name,
            "keyVaultUri": self.vault.vault_uri,
            "keyVaultUserClientId": self.key_vault_user.client_id,
            "tenantId": self._settings.tenant_id,
            "hostedClusters": {
                name: {
                    "controlPlane": cluster.control_plane,
                    "dataPlane": cluster.data_plane,
                    "hostedClusterSpec": cluster.spec,
                }
                for name, cluster in self.hosted_clusters.items()
            },
        }
        if self.key_vault_user.attach_command is not None:
            outputs["keyVaultUserAttachCommand"] = self.key_vault_user.attach_command
        return outputs

    def _vault(self) -> Vault:
        settings, vault = self._settings, self._settings.vault
        return Vault(
            "vault",
            VaultArgs(
                vault_name=vault.name,
                subscription_id=settings.subscription_id,
                tenant_id=settings.tenant_id,
                resource_group=settings.resource_group,
                location=settings.location,
                soft_delete_retention_days=vault.soft_delete_retention_days,
                purge_protection=vault.purge_protection,
                public_network_access=vault.public_network_access,
                default_action=vault.default_action,
                allowed_ip_ranges=vault.allowed_ip_ranges,
                allowed_subnet_ids=vault.allowed_subnet_ids,
                tags=settings.tags,
                protect=settings.protect,
            ),
            self._options,
        )

    def _key_vault_user(self, prerequisites: Prerequisites) -> KeyVaultUser:
        return KeyVaultUser(
            "key-vault-user",
            KeyVaultUserArgs(
                identity=self._reader(prerequisites),
                vault=self.vault,
                subscription_id=self._settings.subscription_id,
            ),
            self._options,
        )

    def _reader(self, prerequisites: Prerequisites) -> Principal | NewIdentity:
        user = self._settings.key_vault_user
        if user.name is not None:
            return NewIdentity(
                name=user.name,
                resource_group=self._settings.resource_group,
                location=self._settings.location,
                tags=self._settings.tags,
                node_resource_group=prerequisites.node_resource_group,
            )
        if user.client_id is not None and user.object_id is not None:
            return Principal(client_id=user.client_id, object_id=user.object_id)
        if prerequisites.add_on_identity is None:
            raise AssertionError("the settings ask for the add-on's identity, and look_up demands it then")
        return prerequisites.add_on_identity
