"""The one table of kinds this API serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from localcloud.core import yaml_text

Definition = dict[str, Any]

_FOLDER: Final = Path(__file__).with_name("definitions")


@cache
def definitions() -> tuple[Definition, ...]:
    """Every CustomResourceDefinition, in the order of the files' names. Each serves one version."""
    return tuple(yaml_text.load(file.read_bytes()) for file in sorted(_FOLDER.glob("*.yaml")))


def version(definition: Definition) -> dict[str, Any]:
    """The one version that is served."""
    [served] = definition["spec"]["versions"]
    return dict(served)


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """One kind as `group/version`; everything that the server does differently for it is a field."""

    group: str = ""
    version: str = "v1"
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    # `all` puts a kind into `kubectl get all`.
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    has_status: bool = False
    # Custom kinds come from CRDs in a real cluster: no strategic merge patch, generation counts from 1.
    custom: bool = False
    # Whether metadata.generation is kept: kinds with a desired and an observed state.
    has_generation: bool = False
    # Paths an update may not change ("field is immutable").
    immutable: tuple[str, ...] = ()
    # Field selectors beyond metadata.name and metadata.namespace.
    selectable: tuple[str, ...] = ()
    # Objects older than this are dropped (kube-apiserver --event-ttl).
    lifetime: timedelta | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`deployments.apps`, as error messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def singular(self) -> str:
        return self.kind.lower()


_INVOLVED: Final = tuple(f"involvedObject.{field}" for field in ("kind", "namespace", "name", "uid", "apiVersion"))
_RBAC: Final = "rbac.authorization.k8s.io"


def _custom(definition: Definition) -> ResourceKind:
    spec, served = definition["spec"], version(definition)
    names = spec["names"]
    return ResourceKind(
        group=spec["group"],
        version=served["name"],
        kind=names["kind"],
        plural=names["plural"],
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        namespaced=spec["scope"] == "Namespaced",
        has_status="status" in served.get("subresources", {}),
        custom=True,
    )


KINDS: Final[tuple[ResourceKind, ...]] = (
    ResourceKind(kind="Namespace", plural="namespaces", short_names=("ns",), namespaced=False, has_status=True),
    ResourceKind(kind="Secret", plural="secrets", immutable=("type",), selectable=("type",)),
    ResourceKind(kind="ConfigMap", plural="configmaps", short_names=("cm",)),
    ResourceKind(kind="ServiceAccount", plural="serviceaccounts", short_names=("sa",)),
    ResourceKind(
        kind="Pod",
        plural="pods",
        short_names=("po",),
        categories=("all",),
        has_status=True,
        has_generation=True,
        selectable=("spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP"),
    ),
    ResourceKind(kind="PersistentVolumeClaim", plural="persistentvolumeclaims", short_names=("pvc",), has_status=True),
    ResourceKind(
        kind="Event",
        plural="events",
        short_names=("ev",),
        selectable=(*_INVOLVED, "reason", "type"),
        lifetime=timedelta(hours=1),
    ),
    ResourceKind(
        group="apps",
        kind="Deployment",
        plural="deployments",
        short_names=("deploy",),
        categories=("all",),
        has_status=True,
        has_generation=True,
        immutable=("spec.selector",),
    ),
    ResourceKind(
        group="apps",
        kind="ReplicaSet",
        plural="replicasets",
        short_names=("rs",),
        categories=("all",),
        has_status=True,
        has_generation=True,
        immutable=("spec.selector",),
    ),
    ResourceKind(
        group="policy",
        kind="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        short_names=("pdb",),
        has_status=True,
        has_generation=True,
    ),
    # Stored and not enforced: pods are processes of this machine.
    ResourceKind(
        group="networking.k8s.io",
        kind="NetworkPolicy",
        plural="networkpolicies",
        short_names=("netpol",),
        has_generation=True,
    ),
    ResourceKind(group=_RBAC, kind="Role", plural="roles"),
    ResourceKind(group=_RBAC, kind="RoleBinding", plural="rolebindings", immutable=("roleRef",)),
    *map(_custom, definitions()),
)

NAMESPACE: Final = KINDS[0]
BY_PLURAL: Final = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}


def field_at(document: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, None if there is none."""
    value: Any = document
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value
