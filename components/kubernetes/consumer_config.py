"""The Kubernetes objects that name the credential file to its consumers."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta

from components.kubernetes.cloud_config import CLOUD_CONFIG_KEY, DOCUMENTS, node, render
from components.kubernetes.wiring import ConsumerArgs, operators_metadata
from identity.catalogue_rows import ConfigFile, PlatformFiles
from identity.settings import HostedClusterSettings, Settings

# The nodes' ConfigMap and the cloud controller manager's Secret share their name.
NODE_CONFIG_MAP: Final = "azure-cloud-config"
# openshift/cluster-network-operator pkg/names/names.go
_NETWORK_OPERATOR_ANNOTATION: Final = {"network.operator.openshift.io/cluster-name": "management"}


class ConsumerConfig(pulumi.ComponentResource):
    """Secret with the document that names the credential file to one consumer."""

    def __init__(
        self, name: str, args: ConsumerArgs, file: ConfigFile, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("idstack:kubernetes:ConsumerConfig", name, None, opts)
        document = render(DOCUMENTS[file.kind](args.settings, args.cluster, args.credential_path))
        core.Secret(
            f"{name}-secret",
            metadata=args.metadata(file.secret),
            type="Opaque",
            # Not stringData: server-side apply cannot own a field that the API does not return.
            data={CLOUD_CONFIG_KEY: base64.b64encode(document.encode()).decode("ascii")},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


class PlatformConfig(pulumi.ComponentResource):
    """Secret and ConfigMap with the platform for a consumer."""

    def __init__(
        self, name: str, args: ConsumerArgs, files: PlatformFiles, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("idstack:kubernetes:PlatformConfig", name, None, opts)
        settings, cluster = args.settings, args.cluster
        facts = {
            "azure_region": cluster.location,
            "azure_resource_prefix": f"{cluster.name}-{cluster.infra_id}",
            "azure_resourcegroup": cluster.resource_group,
            "azure_subscription_id": settings.subscription_id,
            "azure_tenant_id": settings.tenant_id,
        }
        core.Secret(
            f"{name}-secret",
            # The hypershift-operator owns it, even where the stack writes the rest of the identity.
            metadata=operators_metadata(cluster, files.secret, annotated=True),
            type="Opaque",
            data={key: base64.b64encode(fact.encode()).decode("ascii") for key, fact in facts.items()},
            opts=pulumi.ResourceOptions(parent=self),
        )
        core.ConfigMap(
            f"{name}-config-map",
            metadata=meta.ObjectMetaArgs(
                name=files.config_map, namespace=cluster.namespace_name, annotations=_NETWORK_OPERATOR_ANNOTATION
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class NodeConfigArgs:
    """Inputs of `NodeConfig`."""

    settings: Settings
    cluster: HostedClusterSettings


class NodeConfig(pulumi.ComponentResource):
    """ConfigMap with the document of the cluster's nodes."""

    def __init__(self, name: str, args: NodeConfigArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:NodeConfig", name, None, opts)
        core.ConfigMap(
            f"{name}-config-map",
            metadata=meta.ObjectMetaArgs(name=NODE_CONFIG_MAP, namespace=args.cluster.namespace_name),
            data={CLOUD_CONFIG_KEY: render(node(args.settings, args.cluster))},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


class ClusterIdentity(pulumi.ComponentResource):
    """AzureClusterIdentity, which names the credential file to CAPZ.

    As the HyperShift operator writes it
    (`hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:471-525`).
    """

    def __init__(self, name: str, args: ConsumerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:ClusterIdentity", name, None, opts)
        CustomResource(
            f"{name}-object",
            api_version="infrastructure.cluster.x-k8s.io/v1beta1",
            kind="AzureClusterIdentity",
            metadata=args.metadata(args.cluster.name),
            spec={
                "type": "UserAssignedIdentityCredential",
                "tenantID": args.settings.tenant_id,
                # Required by the definition, and empty with this type.
                "clientID": "",
                "clientSecret": {},
                "userAssignedIdentityCredentialsPath": args.credential_path,
                "userAssignedIdentityCredentialsCloudType": args.settings.cloud.capz_cloud_type,
                "allowedNamespaces": {"list": [args.cluster.namespace_name]},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
