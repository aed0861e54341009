"""The configurations of `configurations.yaml` and `configurations-azure.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.unit import cases
from tests.unit.components import world

_FOLDER: Final = Path(__file__).parent


def with_clusters(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of a stack, with `hostedClusters` in place of `cluster` or `clusters`."""
    given = changes.get("clusters") or [cluster for name, cluster in changes.items() if name == "cluster"]
    clusters = [
        {key: value for key, value in world.hosted_cluster(**cluster).items() if value is not cases.ABSENT}
        for cluster in given
    ]
    others = {name: change for name, change in changes.items() if name not in ("cluster", "clusters")}
    return {**({"hostedClusters": clusters} if clusters else {}), **others}


CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    name: with_clusters(changes) for name, changes in cases.read(_FOLDER / "configurations.yaml", vars(world)).items()
}
AZURE: Final[dict[str, dict[str, Any]]] = {
    name: {"hostedClusters": [], **changes}
    for name, changes in cases.read(_FOLDER / "configurations-azure.yaml", vars(world)).items()
}
SELF_MANAGED: Final = {"authentication": "workload-identities", "topology": "Public"}
WITHOUT_VAULT: Final = {
    name: value for name, value in CONFIGURATIONS["workload identities"].items() if name != "hostedClusters"
}
