"""What the rules know of the stack's configuration, as the engine passes it to the pack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from identity.naming import control_plane_identity_name
from identity.settings.schema.problems import NAMESPACE

_VARIABLE: Final = "PULUMI_CONFIG"


@dataclass(frozen=True)
class StackConfig:
    """A stack's configuration, as far as rules need it.

    `is_protected` is its `protect`: stacks with it are production. `clusters` are the names of its hosted clusters;
    `waivers` have the reason by policy and resource, `custom_roles` the role's GUID by the identity's component.
    """

    is_protected: bool = True
    clusters: tuple[str, ...] = ()
    waivers: Mapping[tuple[str, str], str] = field(default_factory=dict)
    custom_roles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the variable that the engine sets. Malformed entries are left out: the program reports them."""
        config: dict[str, str] = json.loads(environ.get(_VARIABLE) or "{}")
        clusters = _list(config.get(f"{NAMESPACE}:hostedClusters"))
        waivers = _list(config.get(f"{NAMESPACE}:policyWaivers"))
        return cls(
            is_protected=config.get(f"{NAMESPACE}:protect") != "false",
            clusters=tuple(str(cluster.get("name")) for cluster in clusters),
            custom_roles={
                control_plane_identity_name(str(cluster.get("name")), name): str(identity["customRole"]).lower()
                for cluster in clusters
                for name, identity in _mapping(cluster.get("identities")).items()
                if "customRole" in _mapping(identity)
            },
            waivers={
                (waiver["policy"], waiver["resource"]): waiver["reason"]
                for waiver in waivers
                if {"policy", "resource", "reason"} <= waiver.keys()
            },
        )

    def cluster_of(self, resource: str) -> str | None:
        """The hosted cluster of the resource with this name, which begins with the cluster's name."""
        owners = [name for name in self.clusters if resource.startswith(f"{name}-")]
        return max(owners, key=len, default=None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(text: str | None) -> list[dict[str, Any]]:
    entries = json.loads(text) if text else []
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
