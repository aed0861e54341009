"""The HostedCluster: what the stack writes into it, and the object of it and the user's part that the stack applies.

`hosted_cluster_spec` has the identity part (`api/hypershift/v1beta1/azure.go`), `from_settings` what the configuration
says beside it, `defaults` what `hypershift create cluster azure` chooses by itself. Sources inside openshift/hypershift
at 3ee9615: `cmd/cluster/core/create.go` (:45-59 defaults, :286-326 the object, :1092-1116 services),
`cmd/cluster/azure/create.go:478-522` (host names).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from components.kubernetes.cloud_config import node_identity_id
from identity.catalogue import CONTROL_PLANE
from identity.hypershift import API_VERSION, KIND, POD_NETWORK, POD_SECURITY, SERVICE_NETWORK
from identity.outputs import EncryptionKeys, KmsKeySpec
from identity.settings import HostedClusterSettings, KmsKey, KmsSettings, Settings
from identity.settings.schema.hosted_clusters import AUTHENTICATION_TYPES

# First words of the host names by service, in the CLI's order. All are Routes: a public cluster with managed identities
# is behind the shared ingress, which tells clusters apart by host name (`support/netutil/visibility.go:80-84`).
_API_SERVER: Final = "APIServer"
_SERVICES: Final = {
    _API_SERVER: "api",
    "Ignition": "ignition",
    "Konnectivity": "konnectivity",
    "OAuthServer": "oauth",
}
# `cmd/cluster/azure/create.go:507-520`
_FOR_NODES: Final = ("Ignition", "Konnectivity")
# api/hypershift/v1beta1/hostedcluster_types.go.
_ETCD_VOLUME: Final = "8Gi"


def from_settings(cluster: HostedClusterSettings) -> dict[str, Any]:
    """`spec` as far as the configuration of the hosted cluster decides it."""
    spec: dict[str, Any] = {}
    if cluster.dns is not None:
        zones = {"publicZoneID": cluster.dns.public_zone_id, "privateZoneID": cluster.dns.private_zone_id}
        spec["dns"] = {"baseDomain": cluster.dns.base_domain} | {key: zone for key, zone in zones.items() if zone}
    if cluster.signing_key_reference is not None:
        spec["serviceAccountSigningKey"] = {"name": cluster.signing_key_reference}
    hosted_cluster = cluster.hosted_cluster
    if hosted_cluster is not None and hosted_cluster.release_image is not None:
        spec["release"] = {"image": hosted_cluster.release_image}
    if hosted_cluster is not None and hosted_cluster.pull_secret is not None:
        spec["pullSecret"] = {"name": hosted_cluster.pull_secret}
    return spec


def defaults(cluster: HostedClusterSettings) -> dict[str, Any]:
    """`metadata` and `spec` of the HostedCluster where neither the configuration nor its identities decide."""
    spec: dict[str, Any] = {
        "controllerAvailabilityPolicy": "SingleReplica",
        "etcd": {
            "managementType": "Managed",
            "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {"size": _ETCD_VOLUME}}},
        },
        "fips": False,
        "networking": {
            "networkType": "OVNKubernetes",
            "clusterNetwork": [{"cidr": POD_NETWORK}],
            "serviceNetwork": [{"cidr": SERVICE_NETWORK}],
        },
        "olmCatalogPlacement": "management",
    }
    if cluster.encryption_key_secret is not None:
        # cmd/cluster/core/create.go:1142-1155
        spec["secretEncryption"] = {"type": "aescbc", "aescbc": {"activeKey": {"name": cluster.encryption_key_secret}}}
    if cluster.disabled_capabilities:
        spec["capabilities"] = {"disabled": list(cluster.disabled_capabilities)}
    if cluster.external_dns_domain is not None or not cluster.needs_host_names:
        spec["services"] = [
            {"service": service, "servicePublishingStrategy": _published(cluster, service, word)}
            for service, word in _SERVICES.items()
        ]
    return {"metadata": {"annotations": dict([POD_SECURITY])}, "spec": spec}


def _published(cluster: HostedClusterSettings, service: str, word: str) -> dict[str, Any]:
    """A Route; the nodes of a private cluster reach two services inside of its network, without a name in the DNS.

    Without an external domain no service has a host name: everybody is inside of the network then, or reaches a public
    API server by a load balancer of its own.
    """
    if cluster.external_dns_domain is None:
        is_balanced = service == _API_SERVER and cluster.topology != "Private"
        return {"type": "LoadBalancer" if is_balanced else "Route"}
    strategy: dict[str, Any] = {"type": "Route"}
    if cluster.topology in (None, "Public") or service not in _FOR_NODES:
        strategy["route"] = {"hostname": f"{word}-{cluster.name}.{cluster.external_dns_domain}"}
    return strategy


def completed(document: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The user's HostedCluster with a default for each annotation and each field of `spec` that it leaves out.

    A field of `spec` is taken whole: parts of two choices, such as a managed and an unmanaged etcd, make no third one.
    """
    metadata = _over(document.get("metadata"), base["metadata"])
    metadata["annotations"] = _over(metadata["annotations"], base["metadata"]["annotations"])
    return {**document, "metadata": metadata, "spec": _over(document.get("spec"), base["spec"])}


def _over(overrides: Any, below: Mapping[str, Any]) -> dict[str, Any]:
    """`below`, overridden by a mapping; any other value is refused elsewhere."""
    return {**below, **overrides} if isinstance(overrides, Mapping) else dict(below)


def base_manifest(cluster: HostedClusterSettings) -> dict[str, Any]:
    """Everything of the HostedCluster but its name and its identity part."""
    base: Mapping[str, Any] = defaults(cluster)
    return {**base, "spec": base["spec"] | from_settings(cluster)}


def hosted_cluster_spec(
    settings: Settings,
    cluster: HostedClusterSettings,
    *,
    vault_name: str,
    control_plane: Mapping[str, Any],
    data_plane: Mapping[str, Any],
) -> dict[str, Any]:
    """`spec` of the HostedCluster as far as identities go.

    `control_plane` and `data_plane` are client ids by field, with placeholders for those that Azure has not given out.
    A cluster that signs in by workload identities has all of them in `data_plane`.

    An identity that is switched off is left out altogether: its members would be required once the key exists. So is
    one that the API has no field for. Without KMS there is no `secretEncryption` here: `defaults` has it, or
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
        return spec
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
    return spec


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
    """`spec.secretEncryption.kms.azure` (`AzureKMSSpec` in `api/hypershift/v1beta1/azure.go`) without the identity."""
    active, backup = kms.active_key, kms.backup_key
    keys: dict[str, Any] = {"activeKey": _kms_key_spec(active)}
    # The API refuses a backup key in another vault than the active one's.
    if backup is not None and backup.key_vault_name == active.key_vault_name:
        keys["backupKey"] = _kms_key_spec(backup)
    if kms.is_managed_hsm:  # operators before OpenShift 4.22 know no other type than KeyVault
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


# HyperShift removes the finalizer once machines, volumes and load balancers are gone.
_LONGEST_DELETION: Final = "60m"


@dataclass(frozen=True)
class Conflict:
    """A value that differs between the user's part and the stack's part."""

    path: tuple[str, ...]
    user_value: Any
    stack_value: Any


class HostedClusterObject(pulumi.ComponentResource):
    """The HostedCluster on the management cluster. Its namespace exists already, as it holds the pull secret.

    `hosted_cluster` is the user's part, `merged` with the stack's.
    """

    def __init__(
        self,
        name: str,
        hosted_cluster: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
        *,
        protect: bool,
    ) -> None:
        super().__init__("idstack:hypershift:HostedClusterObject", name, None, opts)
        CustomResource(
            f"{name}-object",
            api_version=API_VERSION,
            kind=KIND,
            metadata=hosted_cluster["metadata"],
            spec=hosted_cluster["spec"],
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=protect,
                custom_timeouts=pulumi.CustomTimeouts(delete=_LONGEST_DELETION),
            ),
        )
        self.register_outputs({})


def stack_part(cluster: HostedClusterSettings, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the HostedCluster that the stack alone decides; `spec` is the identity part."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": cluster.name, "namespace": cluster.namespace},
        "spec": {**from_settings(cluster), **spec},
    }


def merged(document: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """Merge both parts recursively. A value in both is the same in both (`conflicts`)."""
    merged_document = {**document, **written}
    for key in document.keys() & written.keys():
        if isinstance(written[key], Mapping):
            merged_document[key] = merged(document[key], written[key])
    return merged_document


def conflicts(
    document: Mapping[str, Any], written: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[Conflict]:
    """Every place where the two parts differ, in the order of the stack's part."""
    for key, value in written.items():
        if key not in document:
            continue
        if isinstance(value, Mapping) and isinstance(document[key], Mapping):
            yield from conflicts(document[key], value, (*path, key))
        elif document[key] != value:
            yield Conflict((*path, key), document[key], value)
