"""The objects in a control plane's namespace, as HyperShift's operators write them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.networking import v1 as networking

# learn.microsoft.com/azure/virtual-machines/instance-metadata-service: the same address on every machine.
_METADATA: Final = "169.254.169.254/32"
# learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16: the wire server, where a node's agent gets
# its settings, and Azure's DNS.
_WIRE_SERVER: Final = "168.63.129.16/32"
_DNS: Final = 53


def secret_provider_class(
    name: str,
    metadata: meta.ObjectMetaArgs,
    objects: str,
    *,
    vault_name: str,
    tenant_id: str,
    client_id: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> CustomResource:
    """A class without a copy into a Kubernetes Secret; `client_id` is the identity that reads the vault."""
    return CustomResource(
        name,
        api_version="secrets-store.csi.x-k8s.io/v1",
        kind="SecretProviderClass",
        metadata=metadata,
        spec={
            "provider": "azure",
            # The provider reads strings only: a YAML boolean fails the mount.
            "parameters": {
                "usePodIdentity": "false",
                "useVMManagedIdentity": "true",
                "userAssignedIdentityID": client_id,
                "keyvaultName": vault_name,
                "tenantId": tenant_id,
                "objects": objects,
            },
        },
        opts=opts,
    )


def secret_objects(secret_name: str, object_encoding: str, file: str | None = None) -> str:
    """The parameter `objects`, byte for byte (`support/secretproviderclass/secretproviderclass.go:12-20`).

    Another file name than the secret's is an alias, which no class of HyperShift's has.
    """
    alias = "" if file is None else f"    objectAlias: {file}\n"
    return (
        f"\narray:\n  - |\n    objectName: {secret_name}\n{alias}"
        f"    objectEncoding: {object_encoding}\n"
        "    objectType: secret\n"
    )


def opaque_secret(
    name: str, metadata: meta.ObjectMetaArgs, texts: Mapping[str, str], opts: pulumi.ResourceOptions
) -> core.Secret:
    """A Secret with these texts by key."""
    return core.Secret(
        name,
        metadata=metadata,
        type="Opaque",
        # Not stringData: server-side apply cannot own a field that the API does not return.
        data={key: base64.b64encode(text.encode()).decode("ascii") for key, text in texts.items()},
        opts=opts,
    )


def azure_cluster_identity(
    name: str,
    metadata: meta.ObjectMetaArgs,
    credential_path: str,
    *,
    namespace: str,
    tenant_id: str,
    cloud_type: str,
    opts: pulumi.ResourceOptions,
) -> CustomResource:
    """AzureClusterIdentity, which names the credential file to CAPZ; `cloud_type` is public, usgovernment or china.

    Source: `hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:471-525`.
    """
    return CustomResource(
        name,
        api_version="infrastructure.cluster.x-k8s.io/v1beta1",
        kind="AzureClusterIdentity",
        metadata=metadata,
        spec={
            "type": "UserAssignedIdentityCredential",
            "tenantID": tenant_id,
            # Required by the definition, and empty with this type.
            "clientID": "",
            "clientSecret": {},
            "userAssignedIdentityCredentialsPath": credential_path,
            "userAssignedIdentityCredentialsCloudType": cloud_type,
            "allowedNamespaces": {"list": [namespace]},
        },
        opts=opts,
    )


def block_instance_metadata(name: str, metadata: meta.ObjectMetaArgs, opts: pulumi.ResourceOptions) -> None:
    """A NetworkPolicy of the stack's own, which keeps pods from the nodes' instance metadata.

    Pods of the namespace reach everything but 169.254.169.254, where every caller gets the node's tokens, and
    168.63.129.16, where a node gets its settings; there only Azure's DNS is allowed. Pods are allowed by selector as
    well, because some network plugins (Cilium) match no pod by its address.
    """
    anywhere = networking.NetworkPolicyPeerArgs(
        ip_block=networking.IPBlockArgs(cidr="0.0.0.0/0", except_=[_METADATA, _WIRE_SERVER])
    )
    dns = networking.NetworkPolicyEgressRuleArgs(
        to=[networking.NetworkPolicyPeerArgs(ip_block=networking.IPBlockArgs(cidr=_WIRE_SERVER))],
        ports=[networking.NetworkPolicyPortArgs(protocol=protocol, port=_DNS) for protocol in ("UDP", "TCP")],
    )
    networking.NetworkPolicy(
        name,
        metadata=metadata,
        spec=networking.NetworkPolicySpecArgs(
            pod_selector=meta.LabelSelectorArgs(),
            policy_types=["Egress"],
            egress=[
                networking.NetworkPolicyEgressRuleArgs(
                    to=[
                        anywhere,
                        networking.NetworkPolicyPeerArgs(ip_block=networking.IPBlockArgs(cidr="::/0")),
                        networking.NetworkPolicyPeerArgs(namespace_selector=meta.LabelSelectorArgs()),
                    ]
                ),
                dns,
            ],
        ),
        opts=opts,
    )
