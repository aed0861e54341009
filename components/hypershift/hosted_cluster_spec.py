"""The identity part of a HostedCluster's specification (`api/hypershift/v1beta1/azure.go`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from components.kubernetes.cloud_config import Platform
from identity.catalogue import CONTROL_PLANE
from identity.outputs import HostedClusterSpec
from identity.settings import HostedClusterSettings

# A client id, or its placeholder until Azure gives it out.
ClientId = TypeVar("ClientId")


def hosted_cluster_spec(
    facts: Platform,
    cluster: HostedClusterSettings,
    *,
    vault_name: str,
    control_plane: Mapping[str, ClientId],
    data_plane: Mapping[str, ClientId],
) -> HostedClusterSpec[ClientId]:
    """`spec` of the HostedCluster as far as identities go; `control_plane` and `data_plane` are client ids by field.

    An identity that is switched off is left out altogether: its members would be required once the key exists.
    """
    key = cluster.kms.active_key
    spec: dict[str, Any] = {
        "infraID": facts.infra_id,
        "issuerURL": cluster.issuer_url,
        "platform": {
            "type": "Azure",
            "azure": {
                "cloud": facts.cloud,
                "location": facts.location,
                "resourceGroup": facts.resource_group,
                "subscriptionID": facts.subscription_id,
                "tenantID": facts.tenant_id,
                "vnetID": facts.vnet_id,
                "subnetID": facts.subnet_id,
                "securityGroupID": facts.security_group_id,
                "azureAuthenticationConfig": {
                    "azureAuthenticationConfigType": "ManagedIdentities",
                    "managedIdentities": {
                        "controlPlane": {
                            "managedIdentitiesKeyVault": {"name": vault_name, "tenantID": facts.tenant_id}
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
                        "keyVaultName": key.key_vault_name,
                        "keyName": key.key_name,
                        "keyVersion": key.key_version,
                    }
                },
            },
        },
    }
    for row in CONTROL_PLANE:
        if row.field not in control_plane:
            continue
        *path, field = row.hosted_cluster_path
        owner = spec
        for step in path:
            owner = owner[step]
        owner[field] = {
            "clientID": control_plane[row.field],
            "credentialsSecretName": cluster.identity(row).secret_name,
            "objectEncoding": cluster.object_encoding,
        }
    return cast("HostedClusterSpec[ClientId]", spec)
