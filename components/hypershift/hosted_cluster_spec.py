"""The identity part of a HostedCluster's specification (`api/hypershift/v1beta1/azure.go`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from components.kubernetes.cloud_config import node_identity_id
from identity.catalogue import CONTROL_PLANE
from identity.outputs import EncryptionKeys, HostedClusterSpec, KmsKeySpec
from identity.settings import HostedClusterSettings, KmsKey, KmsSettings, Settings
from identity.settings.schema.hosted_clusters import AUTHENTICATION_TYPES

# A client id, or its placeholder until Azure gives it out.
ClientId = TypeVar("ClientId")


def hosted_cluster_spec(
    settings: Settings,
    cluster: HostedClusterSettings,
    *,
    vault_name: str,
    control_plane: Mapping[str, ClientId],
    data_plane: Mapping[str, ClientId],
) -> HostedClusterSpec[ClientId]:
    """`spec` of the HostedCluster as far as identities go; `control_plane` and `data_plane` are client ids by field.

    A cluster that signs in by workload identities has all of them in `data_plane`.

    An identity that is switched off is left out altogether: its members would be required once the key exists. So is
    one that the API has no field for. Without KMS there is no `secretEncryption` here: `base_manifest.py` has it, or
    the user's part.
    """
    spec: dict[str, Any] = {
        "infraID": cluster.infra_id,
        "issuerURL": cluster.issuer_url,
        "platform": {
            "type": "Azure",
            "azure": {
                "cloud": settings.cloud.hosted_cluster_cloud,
                "location": cluster.location,
                "resourceGroup": cluster.resource_group,
                "subscriptionID": settings.subscription_id,
                "tenantID": settings.tenant_id,
                "vnetID": cluster.vnet_id,
                "subnetID": cluster.subnet_id,
                "securityGroupID": cluster.security_group_id,
                **_endpoint_access(cluster),
                "azureAuthenticationConfig": {
                    "azureAuthenticationConfigType": AUTHENTICATION_TYPES[cluster.authentication],
                },
            },
        },
    }
    if cluster.kms is not None:
        spec["secretEncryption"] = {"type": "kms", "kms": {"provider": "Azure", "azure": _keys(cluster.kms)}}
    if (identity_id := node_identity_id(settings, cluster)) is not None:
        credentials = {"type": "ManagedIdentity", "managedIdentity": {"resourceID": identity_id}}
        spec["platform"]["azure"]["containerRegistry"] = {"credentials": credentials}
    if not cluster.has_credentials:
        for row in CONTROL_PLANE:
            if row.field in data_plane:
                _place(spec, row.workload_path, {"clientID": data_plane[row.field]})
        return cast("HostedClusterSpec[ClientId]", spec)
    vault = {"name": vault_name, "tenantID": settings.tenant_id}
    identities = {"controlPlane": {"managedIdentitiesKeyVault": vault}, "dataPlane": dict(data_plane)}
    spec["platform"]["azure"]["azureAuthenticationConfig"]["managedIdentities"] = identities
    for row in CONTROL_PLANE:
        if row.field not in control_plane or row.hosted_cluster_path is None:
            continue
        credential = {
            "clientID": control_plane[row.field],
            "credentialsSecretName": cluster.identity(row).secret_name,
            "objectEncoding": cluster.identity(row).object_encoding,
        }
        _place(spec, row.hosted_cluster_path, credential)
    return cast("HostedClusterSpec[ClientId]", spec)


def _place(spec: dict[str, Any], path: Sequence[str], identity: Mapping[str, Any]) -> None:
    *steps, field = path
    owner = spec
    for step in steps:
        owner = owner.setdefault(step, {})
    owner[field] = identity


def encryption_keys(cluster: HostedClusterSettings) -> EncryptionKeys | None:
    """The keys of etcd for the outputs, with which the next run compares its own; None without KMS."""
    kms = cluster.kms
    if kms is None:
        return None
    keys: EncryptionKeys = {"activeKey": _kms_key_spec(kms.active_key)}
    if kms.backup_key is not None:
        keys["backupKey"] = _kms_key_spec(kms.backup_key)
    return keys


def _kms_key_spec(key: KmsKey) -> KmsKeySpec:
    """The key as the API has it."""
    return {"keyVaultName": key.key_vault_name, "keyName": key.key_name, "keyVersion": key.key_version}


def _keys(kms: KmsSettings) -> dict[str, Any]:
    """`spec.secretEncryption.kms.azure` without the identity; `KmsAzureSpec` says what is left out and why."""
    active, backup = kms.active_key, kms.backup_key
    keys: dict[str, Any] = {"activeKey": _kms_key_spec(active)}
    if backup is not None and backup.key_vault_name == active.key_vault_name:
        keys["backupKey"] = _kms_key_spec(backup)
    if kms.is_managed_hsm:
        keys["keyVaultType"] = kms.key_vault_type
    if kms.key_vault_access is not None:
        keys["keyVaultAccess"] = kms.key_vault_access
    return keys


def _endpoint_access(cluster: HostedClusterSettings) -> dict[str, Any]:
    """`topology` and `private`, if configured."""
    access: dict[str, Any] = {}
    if cluster.topology is not None:
        access["topology"] = cluster.topology
    if cluster.private is not None:
        # `mode`: the API has lists where the settings have tuples.
        access["private"] = cluster.private.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude_defaults=True
        )
    return access
