"""The inputs that the objects of an identity share."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi_kubernetes.meta import v1 as meta

from components.kubernetes.wiring import credential_path
from identity.catalogue_rows import ControlPlaneIdentity, Mount
from identity.hypershift import CLUSTER_ANNOTATION
from identity.settings import HostedClusterSettings, Settings


@dataclass(frozen=True, kw_only=True)
class IdentityArgs:
    """An identity of a hosted cluster."""

    settings: Settings
    cluster: HostedClusterSettings
    row: ControlPlaneIdentity

    @property
    def secret_name(self) -> str:
        """The secret in the vault with the identity's credential."""
        return self.cluster.identity(self.row).secret_name

    def metadata(self, name: str) -> meta.ObjectMetaArgs:
        """Of an object in the control plane's namespace, as the operator writes it that has the row."""
        return operators_metadata(self.cluster, name, annotated=self.row.of_hypershift_operator)


@dataclass(frozen=True, kw_only=True)
class ConsumerArgs(IdentityArgs):
    """One consumer of the identity, by its mount."""

    mount: Mount

    @property
    def credential_path(self) -> str:
        """The file's absolute path in the consumer's pod."""
        return credential_path(self.mount, self.secret_name)


def operators_metadata(cluster: HostedClusterSettings, name: str, *, annotated: bool) -> meta.ObjectMetaArgs:
    """The hypershift-operator annotates what it writes with the HostedCluster, the control-plane operator nothing."""
    annotations = {CLUSTER_ANNOTATION: f"{cluster.namespace}/{cluster.name}"} if annotated else None
    return meta.ObjectMetaArgs(name=name, namespace=cluster.namespace_name, annotations=annotations)
