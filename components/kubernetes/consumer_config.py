"""The Kubernetes objects that name the credential file to its consumers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta

from components.kubernetes.cloud_config import CLOUD_CONFIG_KEY, DOCUMENTS, Platform, node, render
from identity.catalogue_rows import ConfigFile, PlatformFiles

# The nodes' ConfigMap and the cloud controller manager's Secret share their name.
NODE_CONFIG_MAP: Final = "azure-cloud-config"
# openshift/cluster-network-operator pkg/names/names.go
_NETWORK_OPERATOR_ANNOTATION: Final = {"network.operator.openshift.io/cluster-name": "management"}


@dataclass(frozen=True, kw_only=True)
class ConsumerConfigArgs:
    """Inputs of `ConsumerConfig`. `credential_path` is the file's absolute path in the consumer's pod."""

    platform: Platform
    namespace: str
    file: ConfigFile
    credential_path: str
    annotations: Mapping[str, str] | None = None


class ConsumerConfig(pulumi.ComponentResource):
    """Secret with the document that names the credential file to one consumer."""

    def __init__(self, name: str, args: ConsumerConfigArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:ConsumerConfig", name, None, opts)
        document = render(DOCUMENTS[args.file.kind](args.platform, args.credential_path))
        core.Secret(
            f"{name}-secret",
            metadata=meta.ObjectMetaArgs(name=args.file.secret, namespace=args.namespace, annotations=args.annotations),
            type="Opaque",
            # Not stringData: server-side apply cannot own a field that the API does not return.
            data={CLOUD_CONFIG_KEY: base64.b64encode(document.encode()).decode("ascii")},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class PlatformConfigArgs:
    """Inputs of `PlatformConfig`; `cluster` is the HostedCluster's name."""

    platform: Platform
    cluster: str
    namespace: str
    files: PlatformFiles
    annotations: Mapping[str, str]


class PlatformConfig(pulumi.ComponentResource):
    """Secret and ConfigMap with the platform for a consumer."""

    def __init__(self, name: str, args: PlatformConfigArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:PlatformConfig", name, None, opts)
        platform = args.platform
        facts = {
            "azure_region": platform.location,
            "azure_resource_prefix": f"{args.cluster}-{platform.infra_id}",
            "azure_resourcegroup": platform.resource_group,
            "azure_subscription_id": platform.subscription_id,
            "azure_tenant_id": platform.tenant_id,
        }
        core.Secret(
            f"{name}-secret",
            metadata=meta.ObjectMetaArgs(
                name=args.files.secret, namespace=args.namespace, annotations=args.annotations
            ),
            type="Opaque",
            data={key: base64.b64encode(fact.encode()).decode("ascii") for key, fact in facts.items()},
            opts=pulumi.ResourceOptions(parent=self),
        )
        core.ConfigMap(
            f"{name}-config-map",
            metadata=meta.ObjectMetaArgs(
                name=args.files.config_map, namespace=args.namespace, annotations=_NETWORK_OPERATOR_ANNOTATION
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class NodeConfigArgs:
    """Inputs of `NodeConfig`."""

    platform: Platform
    namespace: str


class NodeConfig(pulumi.ComponentResource):
    """ConfigMap with the document of the cluster's nodes."""

    def __init__(self, name: str, args: NodeConfigArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:NodeConfig", name, None, opts)
        core.ConfigMap(
            f"{name}-config-map",
            metadata=meta.ObjectMetaArgs(name=NODE_CONFIG_MAP, namespace=args.namespace),
            data={CLOUD_CONFIG_KEY: render(node(args.platform))},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class ClusterIdentityArgs:
    """Inputs of `ClusterIdentity`. `cloud_type` is CAPZ's own word: public, usgovernment or china."""

    cluster: str
    namespace: str
    tenant_id: str
    credential_path: str
    cloud_type: str
    annotations: Mapping[str, str] | None = None


class ClusterIdentity(pulumi.ComponentResource):
    """AzureClusterIdentity, which names the credential file to CAPZ.

    As the HyperShift operator writes it
    (`hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:471-525`).
    """

    def __init__(self, name: str, args: ClusterIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:ClusterIdentity", name, None, opts)
        CustomResource(
            f"{name}-object",
            api_version="infrastructure.cluster.x-k8s.io/v1beta1",
            kind="AzureClusterIdentity",
            metadata=meta.ObjectMetaArgs(name=args.cluster, namespace=args.namespace, annotations=args.annotations),
            spec={
                "type": "UserAssignedIdentityCredential",
                "tenantID": args.tenant_id,
                # Required by the definition, and empty with this type.
                "clientID": "",
                "clientSecret": {},
                "userAssignedIdentityCredentialsPath": args.credential_path,
                "userAssignedIdentityCredentialsCloudType": args.cloud_type,
                "allowedNamespaces": {"list": [args.namespace]},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
