"""The cloud configuration documents: they name cloud, network and credential file to the Azure clients in pods.

Keys and their order are those of the Go structs that the operators marshal. Sources inside openshift/hypershift at
3ee9615, below `control-plane-operator/controllers/hostedcontrolplane/`: `cloud/azure/providerconfig.go`,
`v2/cloud_controller_manager/azure/config.go:126-207`, `v2/storage/azure.go:20-53`.

`useManagedIdentityExtension` is true for the nodes only. Consumers try it before the data-plane path, so beside a path
it would sign in as the virtual machine (cloud-provider-azure pkg/azclient/auth.go:59-75). HyperShift's documentation
says otherwise; the code decides (decision record 0005).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from identity.catalogue_rows import CloudConfigKind
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings, Settings

# Key of the document in every Secret and ConfigMap (`CloudConfigKey`).
CLOUD_CONFIG_KEY: Final = "cloud.conf"

Document = Callable[[Settings, HostedClusterSettings, str], dict[str, Any]]
"""Makes a document of the hosted cluster for the consumer that finds its credential at a path."""


def node_identity_id(settings: Settings, cluster: HostedClusterSettings) -> str | None:
    """ARM id of the managed identity that the HostedCluster attaches to its nodes."""
    names = (cluster.identity_names[row.field] for row in cluster.optional_rows if row.attached_by)
    return next(map(settings.identity_id, names), None)


def cloud_controller_manager(
    settings: Settings, cluster: HostedClusterSettings, credential_path: str
) -> dict[str, Any]:
    """The document of the cloud controller manager."""
    return _provider_config(settings, cluster, credential_path, use_node_identity=False)


def node(settings: Settings, cluster: HostedClusterSettings) -> dict[str, Any]:
    """The document of the nodes, which sign in as their virtual machine and pull images by an identity of their own."""
    document = _provider_config(settings, cluster, "", use_node_identity=True)
    if (identity_id := node_identity_id(settings, cluster)) is not None:
        document["userAssignedIdentityID"] = identity_id
    return document


def csi_driver(settings: Settings, cluster: HostedClusterSettings, credential_path: str) -> dict[str, Any]:
    """The document of the disk and the file CSI driver: no names of subnet, security group and load balancer."""
    vnet = parse_arm_id(cluster.vnet_id)
    return {
        **_head(settings, cluster, credential_path, use_node_identity=False),
        "vnetName": vnet.name,
        "vnetResourceGroup": vnet.resource_group,
        "subnetName": "",
        "securityGroupName": "",
        "securityGroupResourceGroup": "",
        "routeTableName": "",
        "cloudProviderBackoff": False,
        "cloudProviderBackoffDuration": 0,
        "useInstanceMetadata": False,
        "loadBalancerSku": "",
        "disableOutboundSNAT": False,
        "loadBalancerName": "",
        "clusterServiceLoadBalancerHealthProbeMode": "",
    }


def kms_plugin(settings: Settings, cluster: HostedClusterSettings, credential_path: str) -> dict[str, Any]:
    """The document of kube-apiserver's KMS plugin: another struct, with other workload-identity and credential keys."""
    return {
        "cloud": settings.cloud.hosted_cluster_cloud,
        "tenantId": settings.tenant_id,
        "useManagedIdentityExtension": False,
        "useWorkloadIdentityExtension": False,
        "subscriptionId": settings.subscription_id,
        "aadClientId": "",
        "aadClientCertPath": "",
        "aadMSIDataPlaneIdentityPath": credential_path,
        "resourceGroup": cluster.resource_group,
        "location": cluster.location,
        "vnetName": "",
        "vnetResourceGroup": "",
        "subnetName": "",
        "securityGroupName": "",
        "securityGroupResourceGroup": "",
        "routeTableName": "",
        "cloudProviderBackoff": True,
        "cloudProviderBackoffDuration": 6,
        "useInstanceMetadata": False,
        "loadBalancerSku": "standard",
        "disableOutboundSNAT": True,
        "loadBalancerName": cluster.infra_id,
    }


DOCUMENTS: Final[Mapping[CloudConfigKind, Document]] = MappingProxyType(
    {
        CloudConfigKind.CLOUD_CONTROLLER_MANAGER: cloud_controller_manager,
        CloudConfigKind.CSI_DRIVER: csi_driver,
        CloudConfigKind.KMS_PLUGIN: kms_plugin,
    }
)


def render(document: Mapping[str, Any]) -> str:
    """The document as JSON in the format of Go's `MarshalIndent` with two spaces: no newline at the end."""
    return json.dumps(document, indent=2, ensure_ascii=False)


def _provider_config(
    settings: Settings, cluster: HostedClusterSettings, credential_path: str, *, use_node_identity: bool
) -> dict[str, Any]:
    vnet, subnet, security_group = map(parse_arm_id, (cluster.vnet_id, cluster.subnet_id, cluster.security_group_id))
    return {
        **_head(settings, cluster, credential_path, use_node_identity=use_node_identity),
        "vnetName": vnet.name,
        "vnetResourceGroup": vnet.resource_group,
        "subnetName": subnet.name,
        "securityGroupName": security_group.name,
        "securityGroupResourceGroup": security_group.resource_group,
        "routeTableName": "",
        "cloudProviderBackoff": True,
        "cloudProviderBackoffDuration": 6,
        "useInstanceMetadata": use_node_identity,
        "loadBalancerSku": "standard",
        "disableOutboundSNAT": True,
        "loadBalancerName": cluster.infra_id,
        "clusterServiceLoadBalancerHealthProbeMode": "shared",
    }


def _head(
    settings: Settings, cluster: HostedClusterSettings, credential_path: str, *, use_node_identity: bool
) -> dict[str, Any]:
    return {
        "cloud": settings.cloud.hosted_cluster_cloud,
        "tenantId": settings.tenant_id,
        "useManagedIdentityExtension": use_node_identity,
        "useFederatedWorkloadIdentityExtension": False,
        "subscriptionId": settings.subscription_id,
        "aadClientId": "",
        "aadClientSecret": "",
        "aadClientCertPath": "",
        "aadFederatedTokenFile": "",
        "aadMSIDataPlaneIdentityPath": credential_path,
        "resourceGroup": cluster.resource_group,
        "location": cluster.location,
    }
