"""The kinds that this API serves: those of `kinds.yaml`, and the custom ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import ConfigDict, TypeAdapter

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

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

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
    def gvk(self) -> dict[str, str]:
        """Group, version and kind as OpenAPI's extension `x-kubernetes-group-version-kind` has them."""
        return {"group": self.group, "version": self.version, "kind": self.kind}

    @property
    def resource(self) -> str:
        """`deployments.apps`, as error messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def singular(self) -> str:
        return self.kind.lower()


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


_BUILT_IN: Final = yaml_text.load(Path(__file__).with_suffix(".yaml").read_bytes())
KINDS: Final[tuple[ResourceKind, ...]] = (
    *TypeAdapter(list[ResourceKind]).validate_python(_BUILT_IN),
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
