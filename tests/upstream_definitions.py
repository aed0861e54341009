"""The definitions that a cluster gets from others: HyperShift's, in each of its feature sets, and the CSI driver's.

They are read out of the Go modules of their releases, which are downloaded once, and stored nowhere else.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from yaml import CSafeLoader, load

from localcloud.testing.kubernetes import Definition
from tools import clients

FEATURE_SETS: Final = ("Default", "TechPreviewNoUpgrade", "CustomNoUpgrade")
"""HyperShift's: `hypershift install` takes the first one, with `--tech-preview-no-upgrade` the second."""

_CRDS: Final = "cmd/install/assets/crds"
_HYPERSHIFT: Final = {
    "azureclusteridentities": f"{_CRDS}/cluster-api-provider-azure/infrastructure.cluster.x-k8s.io_{{}}.yaml",
    "hostedclusters": f"{_CRDS}/hypershift-operator/zz_generated.crd-manifests/{{}}-Hypershift-{{}}.crd.yaml",
}
_DRIVER: Final = "config/crd/bases/secrets-store.csi.x-k8s.io_{}.yaml"


@cache
def upstream(plural: str, feature_set: str = FEATURE_SETS[0]) -> Definition:
    """The real definition; only that of a HostedCluster depends on the feature set."""
    own = _HYPERSHIFT.get(plural)
    file = clients.csi_driver() / _DRIVER if own is None else clients.hypershift() / own
    found: Definition = load(file.with_name(file.name.format(plural, feature_set)).read_bytes(), CSafeLoader)
    return found


def schema_of(definition: Definition, name: str) -> Any:
    """The schema of the version of that name."""
    return next(version for version in definition["spec"]["versions"] if version["name"] == name)["schema"][
        "openAPIV3Schema"
    ]
