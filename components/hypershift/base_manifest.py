"""What the stack writes into a HostedCluster beside its identity part.

`from_settings` has what the configuration says, `defaults` what `hypershift create cluster azure` chooses by itself.
Sources inside openshift/hypershift at 3ee9615: `cmd/cluster/core/create.go` (:45-59 defaults, :286-326 the object,
:1092-1116 services), `cmd/cluster/azure/create.go:478-522` (host names).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from identity.hypershift import POD_NETWORK, POD_SECURITY, SERVICE_NETWORK
from identity.settings import HostedClusterSettings

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
