"""The definitions that a cluster gets from others: HyperShift's, in each of its feature sets, and the CSI driver's.

They are read out of the Go modules of their releases, which are downloaded once, and stored nowhere else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

from yaml import CSafeLoader, load

from localcloud.kubernetes.kinds import Definition

FEATURE_SETS: Final = ("Default", "TechPreviewNoUpgrade", "CustomNoUpgrade")
"""HyperShift's: `hypershift install` takes the first one, with `--tech-preview-no-upgrade` the second."""

# Go module, release, and its checksum (`go.sum`). HyperShift's scripts are those of 3ee9615.
_HYPERSHIFT: Final = ("github.com/openshift/hypershift", "v0.1.80", "h1:M6C6w97IPRytJiI4N29+yeh2tVrZ8can7nQ8C1TtUn8=")
_CSI_DRIVER: Final = (
    "sigs.k8s.io/secrets-store-csi-driver",
    "v1.6.0",
    "h1:YpKG/2hJkp3EkRGpH5SPxg1/5AkmeD5pwHNKIlE90FU=",
)
_CRDS: Final = "cmd/install/assets/crds"
_FILES: Final = {
    "azureclusteridentities": f"{_CRDS}/cluster-api-provider-azure/infrastructure.cluster.x-k8s.io_{{}}.yaml",
    "hostedclusters": f"{_CRDS}/hypershift-operator/zz_generated.crd-manifests/{{}}-Hypershift-{{}}.crd.yaml",
}
_DRIVER: Final = "config/crd/bases/secrets-store.csi.x-k8s.io_{}.yaml"


@cache
def upstream(plural: str, feature_set: str = FEATURE_SETS[0]) -> Definition:
    """The real definition; only that of a HostedCluster depends on the feature set."""
    own = _FILES.get(plural)
    file = module_source(*_CSI_DRIVER) / _DRIVER if own is None else hypershift() / own
    found: Definition = load(file.with_name(file.name.format(plural, feature_set)).read_bytes(), CSafeLoader)
    return found


def schema_of(definition: Definition, name: str) -> Any:
    """The schema of the version of that name."""
    return next(version for version in definition["spec"]["versions"] if version["name"] == name)["schema"][
        "openAPIV3Schema"
    ]


def hypershift() -> Path:
    """The folder with HyperShift's source, out of the Go module of its release; raises as `module_source` does."""
    return module_source(*_HYPERSHIFT)


@cache
def module_source(module: str, release: str, checksum: str) -> Path:
    """The folder with the source of a Go module, in Go's own cache; raises RuntimeError if it cannot be had."""
    go = shutil.which("go")
    if go is None:
        raise RuntimeError(f"{module} is downloaded by `go`, which is not on PATH (go.dev/dl)")
    command = [go, "mod", "download", "-json", f"{module}@{release}"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} cannot be downloaded:\n{done.stdout}{done.stderr}")
    found = json.loads(done.stdout)
    if found["Sum"] != checksum:
        raise RuntimeError(f"{module} {release} has the checksum {found['Sum']}, not {checksum}")
    return Path(found["Dir"])
