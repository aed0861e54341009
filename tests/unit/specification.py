"""The identity part of a HostedCluster's specification, as the stack writes it and `idstack export` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SUBSCRIPTION: Final = "11111111-2222-4333-8444-555555555555"
TENANT: Final = "99999999-8888-4777-8666-555555555555"
GROUPS: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
VNET: Final = f"{GROUPS}/hc1-network/providers/Microsoft.Network/virtualNetworks/hc1-vnet"
SUBNET: Final = f"{VNET}/subnets/default"
SECURITY_GROUP: Final = f"{GROUPS}/hc1-nsg/providers/Microsoft.Network/networkSecurityGroups/hc1-nsg"


def specification(
    *,
    control_plane: Mapping[str, Mapping[str, str]],
    data_plane: Mapping[str, str],
    kms: Mapping[str, str],
    name: str = "hc1",
    cloud: str = "AzurePublicCloud",
) -> dict[str, Any]:
    """Everything where the API wants it; the identities are given by API field."""
    return {
        "infraID": f"{name}-infra",
        "issuerURL": "https://hc1oidc.blob.core.windows.net/hc1oidc",
        "platform": {
            "type": "Azure",
            "azure": {
                "cloud": cloud,
                "location": "eastus",
                "resourceGroup": f"{name}-managed",
                "subscriptionID": SUBSCRIPTION,
                "tenantID": TENANT,
                "vnetID": VNET,
                "subnetID": SUBNET,
                "securityGroupID": SECURITY_GROUP,
                "azureAuthenticationConfig": {
                    "azureAuthenticationConfigType": "ManagedIdentities",
                    "managedIdentities": {
                        "controlPlane": {
                            "managedIdentitiesKeyVault": {"name": "kv-idstack-dev", "tenantID": TENANT},
                            **control_plane,
                        },
                        "dataPlane": dict(data_plane),
                    },
                },
            },
        },
        "secretEncryption": {
            "type": "kms",
            "kms": {
                "provider": "Azure",
                "azure": {
                    "activeKey": {
                        "keyVaultName": "kv-etcd-dev",
                        "keyName": "hc1-etcd",
                        "keyVersion": "0123456789abcdef0123456789abcdef",
                    },
                    "kms": dict(kms),
                },
            },
        },
    }
