"""The custom kinds of the stack's objects on the management cluster, and what installs them on a plain AKS cluster.

Without its definition, a kind's first object fails after minutes of waiting in the Kubernetes provider.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from identity.hypershift import API_VERSION
from identity.settings import Settings

_ADD_ON: Final = "the add-on azure-keyvault-secrets-provider"
# It applies the CRDs of HyperShift and of Cluster API's Azure provider
# (openshift/hypershift 3ee9615, `cmd/install/assets/crds/assets.go:24-97`).
_HYPERSHIFT: Final = "`hypershift install`"
# The CRDs alone, without the operator (`cmd/install/install.go:510,520`).
_HYPERSHIFT_CRDS: Final = "`hypershift install --install-scope=crds --limit-crd-install=Azure`"


@dataclass(frozen=True)
class CustomKind:
    """A kind by `version` (group/version) and `plural`; `source` is what installs its definition, None if unknown."""

    version: str
    plural: str
    source: str | None = None

    @property
    def path(self) -> str:
        """`<group>/<version>/<plural>`."""
        return f"{self.version}/{self.plural}"

    def __str__(self) -> str:
        return f"{self.plural}.{self.version}"


SECRET_PROVIDER_CLASSES: Final = CustomKind("secrets-store.csi.x-k8s.io/v1", "secretproviderclasses", _ADD_ON)
AZURE_CLUSTER_IDENTITIES: Final = CustomKind(
    "infrastructure.cluster.x-k8s.io/v1beta1", "azureclusteridentities", _HYPERSHIFT_CRDS
)
HOSTED_CLUSTERS: Final = CustomKind(API_VERSION, "hostedclusters", _HYPERSHIFT)
_ALL: Final = (SECRET_PROVIDER_CLASSES, AZURE_CLUSTER_IDENTITIES, HOSTED_CLUSTERS)


def required_kinds(settings: Settings) -> tuple[CustomKind, ...]:
    """The custom kinds of the stack's objects, which the API server must serve."""
    cluster_side = (SECRET_PROVIDER_CLASSES, AZURE_CLUSTER_IDENTITIES) if settings.makes_cluster_sides else ()
    is_applied = any(cluster.hosted_cluster for cluster in settings.hosted_clusters)
    return (*cluster_side, *((HOSTED_CLUSTERS,) if is_applied else ()))


def kind_of(path: str) -> CustomKind:
    """The kind with this `<group>/<version>/<plural>`, also one that is not in the table."""
    version, _, plural = path.rpartition("/")
    return next((kind for kind in _ALL if kind.path == path), CustomKind(version, plural))


def sources(missing: Collection[CustomKind]) -> Iterator[str]:
    """What installs the missing kinds, one phrase for each source."""
    for source in dict.fromkeys(kind.source for kind in missing):
        names = " and ".join(kind.plural for kind in missing if kind.source == source)
        yield f"{names} come with {source or 'what defines them'}"
