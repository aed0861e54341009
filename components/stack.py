"""The whole stack: vault and key-vault-user, its own or the shared stack's, every hosted cluster, and the outputs.

A run that only renews leaves everything else as it is, whatever the configuration says by now. So must its outputs:
they are those of the last whole run, with the renewed credentials' dates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pulumi

from components.azure.context import ClusterContext, CredentialStore
from components.azure.management_cluster import ManagementCluster
from components.azure.providers import Providers
from components.azure.vault import ExistingIdentity, KeyVaultUser, NewIdentity, Vault
from components.hypershift.hosted_cluster import HostedCluster, HostedClusterArgs, Leaf
from components.hypershift.hosted_cluster_object import base_manifest
from components.plugin.resources import StackOwner
from components.preflight.preflight import Preflight
from components.preflight.prerequisites import Prerequisites
from identity.naming import parse_arm_id
from identity.outputs import HostedClusterOutput, StackOutputs, delivered_generations
from identity.settings import HostedClusterSettings, Settings
from identity.settings.rules.credential_loss import credential_addresses, key_vault_user_address


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
        self._commit = preflight.commit
        self._owner_id = None if owner is None else owner.outputs["ownerId"]
        options, prerequisites = providers.options(), preflight.prerequisites
        self._store = preflight.shared or _own_store(settings, prerequisites, cluster, self._owner_id, options)
        self.hosted_clusters = {
            hosted.name: HostedCluster(
                hosted.name,
                HostedClusterArgs(
                    context=ClusterContext(
                        settings=settings,
                        cluster=hosted,
                        store=self._store,
                        deployer=preflight.deployer,
                        connection=providers.connection,
                        stack_owner=self._owner_id,
                    ),
                    imported=prerequisites.imported[hosted.name],
                    manifest=prerequisites.manifests.get(hosted.name),
                    delivered=delivered_generations(preflight.last, hosted.name),
                    handed_over=preflight.handed_over.get(hosted.name),
                    signing_key_file_id=prerequisites.signing_key_files.get(hosted.name),
                ),
                options,
            )
            for hosted in settings.hosted_clusters
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
        if self._owner_id is not None:
            outputs["ownerId"] = self._owner_id
        if self._settings.management_cluster is not None:
            outputs["managementClusterId"] = self._settings.management_cluster_id
        if self._store.attach_command is not None:
            outputs["keyVaultUserAttachCommand"] = self._store.attach_command
        if self._store.key_vault_user_object_id is not None and self._settings.shared_stack is None:
            outputs["keyVaultUserObjectId"] = self._store.key_vault_user_object_id
        if (in_use := key_vault_user_address(self._settings)) is not None:
            outputs["keyVaultUserInUse"] = in_use
        if self._commit is not None:
            outputs["commit"] = self._commit
        return outputs

    def _exported(self, settings: HostedClusterSettings) -> HostedClusterOutput[Leaf]:
        cluster = self.hosted_clusters[settings.name]
        exported: HostedClusterOutput[Leaf] = {
            "namespace": cluster.namespace,
            "controlPlane": cluster.control_plane,
            "dataPlane": cluster.data_plane,
            "hostedClusterSpec": cluster.spec,
            "hostedClusterBase": base_manifest(settings),
            "dnsZoneResourceGroup": settings.dns_zone_resource_group,
            "credentialsInUse": credential_addresses(self._settings, settings, self._store.vault_id),
        }
        if cluster.encryption_keys is not None:
            exported["encryptionKeys"] = cluster.encryption_keys
        if cluster.encryption_key_secret is not None:
            exported["encryptionKeySecret"] = cluster.encryption_key_secret
        if settings.external_dns_domain is not None:
            exported["externalDnsDomain"] = settings.external_dns_domain
        if settings.external_dns_zone_id is not None:
            exported["externalDnsZone"] = parse_arm_id(settings.external_dns_zone_id).name
        if cluster.managed_identities:
            exported["managedIdentities"] = cluster.managed_identities
        return exported


def _own_store(
    settings: Settings,
    prerequisites: Prerequisites,
    cluster: ManagementCluster | None,
    stack_owner: pulumi.Output[str] | None,
    options: pulumi.ResourceOptions,
) -> CredentialStore:
    if settings.vault is None:
        return CredentialStore()
    vault = Vault("vault", settings, settings.vault, options)
    store = CredentialStore(vault_id=vault.vault_id, vault_uri=vault.vault_uri, vault=[vault])
    if not settings.has_key_vault_user:
        return store
    identity = _key_vault_user_identity(settings, prerequisites, cluster)
    user = KeyVaultUser("key-vault-user", settings, vault, identity, stack_owner, options)
    return replace(
        store,
        key_vault_user_client_id=user.client_id,
        key_vault_user_object_id=user.principal_id if settings.key_vault_user_scope == "secrets" else None,
        attach_command=user.attach_command,
        key_vault_user=[user],
    )


def _key_vault_user_identity(
    settings: Settings, prerequisites: Prerequisites, cluster: ManagementCluster | None
) -> ExistingIdentity | NewIdentity:
    user = settings.key_vault_user
    if user.name is not None:
        group = prerequisites.management_cluster.node_resource_group if cluster is None else cluster.node_resource_group
        return NewIdentity(name=user.name, node_resource_group=group)
    if user.client_id is not None and user.object_id is not None:
        return ExistingIdentity(client_id=user.client_id, object_id=user.object_id)
    if cluster is not None:
        return cluster.add_on
    if prerequisites.management_cluster.add_on_identity is None:
        raise AssertionError("the settings ask for the add-on's identity, and look_up demands it then")
    return prerequisites.management_cluster.add_on_identity


_RENEWED: Final = ("notAfter", "renewAfter", "thumbprint", "generation")
# The credential source of an identity whose certificates the stack issues (`schema/hosted_clusters.py`).
_ISSUED_BY_STACK: Final = "entra-application"


def renewed_outputs(before: StackOutputs[str], now: StackOutputs[Leaf]) -> dict[str, Any]:
    """The outputs `before` with the new dates of every credential whose thumbprint has changed.

    Nothing else of the program's outputs, `now`, counts. A credential that the run did not renew is as before: nothing
    is known of a resource that failed or was not a target.
    """
    clusters = before.get("hostedClusters")
    if not clusters:
        return {**before}
    known = now.get("hostedClusters", {})
    return {
        **before,
        "hostedClusters": {
            name: {**cluster, "controlPlane": _rows(cluster, known[name])} if name in known else cluster
            for name, cluster in clusters.items()
        },
    }


def _rows(before: HostedClusterOutput[str], now: HostedClusterOutput[Leaf]) -> dict[str, Any]:
    """The identities as before, except those with certificates of the stack and an unchanged address."""
    return {
        field: _renewed(row, now["controlPlane"][field]) if _is_renewed_here(field, before, now) else row
        for field, row in before["controlPlane"].items()
    }


def _is_renewed_here(field: str, before: HostedClusterOutput[str], now: HostedClusterOutput[Leaf]) -> bool:
    address = before["credentialsInUse"].get(field)
    return (
        address is not None
        and address["principal"] == _ISSUED_BY_STACK
        and address == now["credentialsInUse"].get(field)
    )


def _renewed(before: Mapping[str, Any], now: Mapping[str, Any]) -> pulumi.Output[dict[str, Any]]:
    dates: pulumi.Output[dict[str, Any]] = pulumi.Output.from_input({name: now[name] for name in _RENEWED})

    async def merged() -> dict[str, Any]:
        renewed = await dates.future() if await dates.is_known() else None
        if not renewed or renewed["thumbprint"] in (None, before["thumbprint"]):
            return dict(before)
        return {**before, **renewed}

    async def always() -> bool:
        return True

    return pulumi.Output(
        dates.resources(), asyncio.ensure_future(merged()), asyncio.ensure_future(always()), dates.is_secret()
    )
