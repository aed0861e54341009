"""The reports of HyperShift and the CSI driver on the management cluster: conditions, and mounts in pods.

Sources in openshift/hypershift at 3ee9615: the names of the conditions are in
`api/hypershift/v1beta1/hostedcluster_conditions.go`, their expected status in `support/conditions/conditions.go:12-35`.
The driver writes one SecretProviderClassPodStatus for each pod and class (kubernetes-sigs/secrets-store-csi-driver
0aad886, `pkg/secrets-store/nodeserver.go`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from identity.aks.api_server import ApiServer
from identity.azure.errors import AccessError
from identity.hypershift import HOSTED_CLUSTER_PATH
from identity.naming import control_plane_namespace
from identity.outputs import HostedClusterOutput, StackOutputs, cluster_side
from ops.access.management_cluster import api_server
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

_POD_STATUSES: Final = "/apis/secrets-store.csi.x-k8s.io/v1/namespaces/{}/secretproviderclasspodstatuses"
# The conditions that are False on a running cluster; every other one is True.
_EXPECTED_FALSE: Final = frozenset(
    {
        *("Progressing", "Degraded", "ClusterVersionProgressing", "ClusterVersionFailing", "EtcdRecoveryActive"),
        *("ClusterSizeTransitionPending", "ClusterSizeTransitionRequired"),
    }
)
# These may have any status on a running cluster.
_ANY_STATUS: Final = frozenset(
    {
        *("ClusterVersionUpgradeable", "ClusterVersionRetrievedUpdates", "AutoNodeEnabled", "ClusterSizeComputed"),
        *("CloudResourcesDestroyed", "HostedClusterDestroyed", "HostedClusterRestoredFromBackup"),
        *("EtcdBackupSucceeded", "PublicEndpointExposed", "ValidAWSIdentityProvider", "ValidAWSKMSConfig"),
    }
)
# Always shown: whether the cluster runs, and the conditions that depend on its identities.
_SHOWN: Final = (
    *("Available", "Progressing", "Degraded", "InfrastructureReady", "ValidConfiguration"),
    *("ValidHostedControlPlaneConfiguration", "ValidOIDCConfiguration", "ValidAzureKMSConfig"),
)


@dataclass(frozen=True)
class HostedClusterCondition:
    """One condition of a HostedCluster; `status` is True, False or Unknown.

    `is_unverifiable`: HyperShift cannot verify it for this cluster, so Unknown counts as True.
    """

    cluster: str
    type: str
    status: str
    reason: str
    message: str
    is_unverifiable: bool = False

    @property
    def is_expected(self) -> bool:
        """Whether a running cluster has this status."""
        if self.type in _ANY_STATUS or (self.is_unverifiable and self.status == "Unknown"):
            return True
        return self.status == ("False" if self.type in _EXPECTED_FALSE else "True")

    @property
    def is_shown(self) -> bool:
        """Whether it is in the table: a main condition, or one with an unexpected status."""
        return self.type in _SHOWN or not self.is_expected

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "expected": self.is_expected,
        }


@dataclass(frozen=True, kw_only=True)
class SeenMount:
    """A SecretProviderClassPodStatus: the driver's mount in a pod; `versions` are by object id."""

    pod: str
    secret_provider_class: str
    is_mounted: bool
    versions: Mapping[str, str]


@dataclass(frozen=True)
class MountedVersion:
    """The version of an identity's secret in one pod; `current` is the vault's, None if that could not be read."""

    cluster: str
    identity: str
    pod: str
    version: str
    is_mounted: bool
    current: str | None

    @property
    def state(self) -> Literal["current", "old", "not mounted", "not known"]:
        if not self.is_mounted:
            return "not mounted"
        if self.current is None:
            return "not known"
        return "current" if self.version == self.current else "old"

    def to_json(self) -> dict[str, Any]:
        return {"pod": self.pod, "version": self.version, "vaultVersion": self.current, "state": self.state}


@dataclass(frozen=True)
class ClusterState:
    """The conditions and mounts that were read; `unread` has the reason for each one that was not."""

    conditions: tuple[HostedClusterCondition, ...] = ()
    mounts: tuple[MountedVersion, ...] = ()
    unread: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Conditions by cluster, mounts by cluster and identity."""
        conditions: dict[str, list[dict[str, Any]]] = {}
        for condition in self.conditions:
            conditions.setdefault(condition.cluster, []).append(condition.to_json())
        mounts: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for (cluster, identity), versions in by_identity(self.mounts).items():
            mounts.setdefault(cluster, {})[identity] = [version.to_json() for version in versions]
        return {"conditions": conditions, "mounts": mounts, "unread": list(self.unread)}


def by_identity(mounted: Iterable[MountedVersion]) -> Mapping[tuple[str, str], list[MountedVersion]]:
    by_owner: dict[tuple[str, str], list[MountedVersion]] = {}
    for version in mounted:
        by_owner.setdefault((version.cluster, version.identity), []).append(version)
    return by_owner


def read_cluster_state(engine: Engine, outputs: StackOutputs[str], versions: Mapping[str, str]) -> ClusterState | None:
    """The cluster state now; None for a stack without a management cluster. Errors are in `unread`, not raised.

    `versions` are the known current versions of the vault's secrets, by name.
    """
    if not outputs.get("hostedClusters"):
        return None
    if "managementClusterId" not in outputs:
        if all(cluster_side(outputs, cluster) == "stack" for cluster in outputs["hostedClusters"].values()):
            return None
        return ClusterState(unread=("the management cluster: the stack's configuration has no managementCluster",))
    try:
        with api_server(engine) as server:
            return read(server, outputs, versions)
    except (AccessError, CommandError) as error:
        return ClusterState(unread=(f"the management cluster: {error}",))


def read(server: ApiServer, outputs: StackOutputs[str], versions: Mapping[str, str]) -> ClusterState:
    """Read the stack's hosted clusters; conditions only with `clusterSide: hypershift`. Errors are in `unread`."""
    conditions: list[HostedClusterCondition] = []
    mounts: list[MountedVersion] = []
    unread: list[str] = []
    for name, cluster in outputs.get("hostedClusters", {}).items():
        try:
            if cluster_side(outputs, cluster) == "hypershift":
                document = hosted_cluster(server, name, cluster["namespace"])
                if document is None:
                    raise AccessError(f"there is no HostedCluster {cluster['namespace']}/{name}")
                conditions += conditions_of(name, document)
        except AccessError as error:
            unread.append(f"the conditions of {name}: {error}")
        try:
            mounts += _mounts(server, name, cluster, versions)
        except AccessError as error:
            unread.append(f"the mounts in the pods of {name}: {error}")
    return ClusterState(tuple(conditions), tuple(mounts), tuple(unread))


def hosted_cluster(server: ApiServer, name: str, namespace: str) -> dict[str, Any] | None:
    """A HostedCluster by its name and namespace, None without one. Raises AccessError."""
    return server.read(HOSTED_CLUSTER_PATH.format(namespace, name))


def mounts_in(server: ApiServer, namespace: str) -> tuple[SeenMount, ...]:
    """The driver's mounts in the pods of a namespace. Raises AccessError."""
    listed = (server.read(_POD_STATUSES.format(namespace)) or {}).get("items") or ()
    return tuple(
        SeenMount(
            pod=status.get("podName") or "",
            secret_provider_class=status.get("secretProviderClassName") or "",
            is_mounted=bool(status.get("mounted")),
            versions={mounted["id"]: mounted["version"] for mounted in status.get("objects") or ()},
        )
        for status in (item["status"] for item in listed if item.get("status"))
    )


def conditions_of(name: str, document: Mapping[str, Any]) -> Iterator[HostedClusterCondition]:
    unverifiable = set(_unverifiable(document.get("spec") or {}))
    for condition in (document.get("status") or {}).get("conditions") or ():
        yield HostedClusterCondition(
            name,
            condition["type"],
            condition["status"],
            condition.get("reason", ""),
            condition.get("message", ""),
            condition["type"] in unverifiable,
        )


def _unverifiable(spec: Mapping[str, Any]) -> Iterator[str]:
    """The conditions that stay Unknown on a cluster with this `spec`, as in `support/conditions/conditions.go:57-116`.

    HyperShift does not check the key vault without KMS, or behind a private endpoint, and no host name of an API server
    without one, or with one for its own network alone (`support/netutil/expose.go:94-113`).
    """
    kms = ((spec.get("secretEncryption") or {}).get("kms") or {}).get("azure")
    if not kms or kms.get("keyVaultAccess") == "Private":
        yield "ValidAzureKMSConfig"
    published = [
        service["servicePublishingStrategy"]
        for service in spec.get("services") or ()
        if service["service"] == "APIServer"
    ]
    names = [(strategy.get(key) or {}).get("hostname") for strategy in published for key in ("route", "loadBalancer")]
    topology = ((spec.get("platform") or {}).get("azure") or {}).get("topology")
    if topology == "Private" or not any(names):
        yield "ExternalDNSReachable"


def _mounts(
    server: ApiServer, name: str, cluster: HostedClusterOutput[str], versions: Mapping[str, str]
) -> Iterator[MountedVersion]:
    namespace = control_plane_namespace(cluster["namespace"], name)
    mounts = sorted(mounts_in(server, namespace), key=lambda mount: mount.pod)
    for identity, row in cluster["controlPlane"].items():
        secret = row["credentialsSecretName"]
        for mount in mounts:
            version = mount.versions.get(f"secret/{secret}")
            if mount.secret_provider_class == row["secretProviderClass"] and version is not None:
                yield MountedVersion(name, identity, mount.pod, version, mount.is_mounted, versions.get(secret))
