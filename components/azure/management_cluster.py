"""The AKS cluster of the hosted control planes, if the stack makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi_azure_native import containerservice

from components.azure.providers import Deployer, Providers
from components.azure.role_grants import RoleGrants, RoleGrantsArgs
from components.azure.vault import ExistingIdentity
from identity import resource_types
from identity.naming import DEPLOYER_COMPONENT, dns_prefix, node_resource_group
from identity.roles import AKS_RBAC_CLUSTER_ADMIN_ROLE
from identity.secrets_store import ADD_ON
from identity.settings import CreationSettings, ManagementClusterSettings, Settings

NODE_POOL: Final = "system"
# AKS fixes them as it makes a cluster (azure-native `provider/pkg/gen/replacement.go`). An import has them as inputs,
# and the next `up` would replace the cluster for want of them.
_LEFT_TO_AKS: Final = [
    *("diskEncryptionSetID", "fqdnSubdomain", "linuxProfile", "windowsProfile"),
    *(f"networkProfile.{name}" for name in ("dnsServiceIP", "networkDataplane", "networkMode", "networkPluginMode")),
    *(f"networkProfile.{name}" for name in ("outboundType", "podCidr", "serviceCidr", "serviceCidrs")),
]


class ManagementCluster(pulumi.ComponentResource):
    """AKS with sign-in by Entra ID only, workload identity, and the secrets-store add-on.

    `cluster` is `settings.management_cluster`, and `creation` its `create`; `deployer` runs the stack. With Azure RBAC
    it gets Azure Kubernetes Service RBAC Cluster Admin on the cluster. `ready` holds the resources that a sign-in
    depends on. `has_azure_rbac` tells whether Azure RBAC or Kubernetes RBAC authorizes requests.

    Outputs: `cluster_id` and `node_resource_group` (str, known before the cluster exists); `name` and `uid`
    (Output[str]) and the identity `add_on`: unknown in a preview of a new cluster, known in a preview of its change.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        cluster: ManagementClusterSettings,
        creation: CreationSettings,
        deployer: Deployer,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(resource_types.MANAGEMENT_CLUSTER, name, None, opts)
        group = cluster.resource_group
        self.cluster_id = settings.management_cluster_id
        self.has_azure_rbac = creation.azure_rbac
        self.node_resource_group = node_resource_group(group, cluster.name, settings.location)
        aks = self._cluster(name, settings, cluster, creation)
        self.ready: list[pulumi.Resource] = [aks]
        if self.has_azure_rbac:
            role = RoleGrantsArgs(
                infra_id=cluster.name,
                component=DEPLOYER_COMPONENT,
                role=AKS_RBAC_CLUSTER_ADMIN_ROLE,
                scopes={"cluster": self.cluster_id},
                subscription_id=settings.subscription_id,
                principal_id=deployer.object_id,
                deployer=deployer,
            )
            after = pulumi.ResourceOptions(parent=self, depends_on=[aks])
            self.ready.append(RoleGrants(f"{name}-deployer", role, after))
        self.name: pulumi.Output[str] = aks.name
        # In the preview of an update, the resource's only known output is the name. The others are read from Azure.
        current = containerservice.get_managed_cluster_output(
            resource_group_name=group,
            resource_name=aks.name,
            opts=pulumi.InvokeOptions(parent=self),
        )
        self.uid: pulumi.Output[str] = current.apply(lambda answer: answer.resource_uid)
        identity = current.apply(
            lambda answer: _identity(answer.addon_profiles) or aks.addon_profiles.apply(_required_identity)
        )
        self.add_on = ExistingIdentity(
            client_id=identity.apply(lambda add_on: add_on.client_id),
            object_id=identity.apply(lambda add_on: add_on.object_id),
        )
        self.register_outputs(
            {
                "cluster_id": self.cluster_id,
                "node_resource_group": self.node_resource_group,
                "name": self.name,
                "uid": self.uid,
                "add_on_client_id": self.add_on.client_id,
                "add_on_object_id": self.add_on.object_id,
            }
        )

    def _cluster(
        self, name: str, settings: Settings, cluster: ManagementClusterSettings, creation: CreationSettings
    ) -> containerservice.ManagedCluster:
        groups, pool = list(creation.admin_group_object_ids), creation.node_pool
        rotation = {"enableSecretRotation": "true", "rotationPollInterval": creation.rotation_poll_interval}
        return containerservice.ManagedCluster(
            f"{name}-aks",
            resource_name_=cluster.name,
            resource_group_name=cluster.resource_group,
            location=settings.location,
            tags=settings.tags,
            dns_prefix=dns_prefix(cluster.name),
            # AKS's default, but explicit: an imported cluster would be replaced without it.
            node_resource_group=self.node_resource_group,
            kubernetes_version=creation.kubernetes_version,
            identity=containerservice.ManagedClusterIdentityArgs(
                type=containerservice.ResourceIdentityType.SYSTEM_ASSIGNED
            ),
            agent_pool_profiles=[
                containerservice.ManagedClusterAgentPoolProfileArgs(
                    name=NODE_POOL,
                    mode=containerservice.AgentPoolMode.SYSTEM,
                    os_type=containerservice.OSType.LINUX,
                    type=containerservice.AgentPoolType.VIRTUAL_MACHINE_SCALE_SETS,
                    vm_size=pool.vm_size,
                    count=pool.count,
                    availability_zones=[str(zone) for zone in pool.zones] or None,
                    max_pods=pool.max_pods,
                    os_sku=pool.os_sku,
                    enable_fips=pool.fips,
                )
            ],
            # No `...Args`, which add ranges: AKS keeps no `podCidr` here, and a changed one replaces the cluster.
            network_profile={"network_plugin": creation.network.plugin, "network_policy": creation.network.policy},
            enable_rbac=True,
            disable_local_accounts=True,
            aad_profile=containerservice.ManagedClusterAADProfileArgs(
                managed=True,
                enable_azure_rbac=creation.azure_rbac,
                admin_group_object_ids=groups or None,
                tenant_id=settings.tenant_id,
            ),
            oidc_issuer_profile=containerservice.ManagedClusterOIDCIssuerProfileArgs(enabled=True),
            security_profile=containerservice.ManagedClusterSecurityProfileArgs(
                workload_identity=containerservice.ManagedClusterSecurityProfileWorkloadIdentityArgs(enabled=True)
            ),
            addon_profiles={ADD_ON: containerservice.ManagedClusterAddonProfileArgs(enabled=True, config=rotation)},
            opts=pulumi.ResourceOptions(parent=self, protect=settings.protect, ignore_changes=_LEFT_TO_AKS),
        )


def create_management_cluster(settings: Settings, providers: Providers, deployer: Deployer) -> ManagementCluster | None:
    """Make the management cluster, unless it exists already or there is none."""
    cluster = settings.management_cluster
    if cluster is None or cluster.create is None:
        return None
    return ManagementCluster(
        "management-cluster",
        settings,
        cluster,
        cluster.create,
        deployer,
        providers.options(),
    )


def _identity(profiles: Mapping[str, Any] | None) -> Any:
    """The add-on's identity; None if the add-on is off."""
    profile = (profiles or {}).get(ADD_ON)
    return profile.identity if profile is not None and profile.enabled else None


def _required_identity(profiles: Mapping[str, Any] | None) -> Any:
    identity = _identity(profiles)
    if identity is None:
        raise pulumi.RunError(
            "idstack:managementCluster: the cluster no longer runs its add-on azure-keyvault-secrets-provider: "
            "it was switched off outside of the stack. `.venv/bin/idstack up --refresh` switches it on again"
        )
    return identity
