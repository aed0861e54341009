"""Which changes there are, and which of them replace the object (pulumi-kubernetes `provider/pkg/provider/diff.go`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from localcloud.providers.kubernetes.inputs import AUTONAMED
from plugin import Diff, Props, diff_properties, unwrap

_IDENTITY: Final = ("metadata.name", "metadata.namespace")
# By apiVersion and kind; Secret and ConfigMap depend on the provider's settings.
_REPLACED_BY: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("apps/v1", "Deployment"): ("spec.selector",),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): ("roleRef",),
    ("v1", "Pod"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.terminationGracePeriodSeconds",
        "spec.volumes",
        "spec.containers",
    ),
}


def difference(old: Props, new: Props, *, is_secret_mutable: bool, is_config_map_mutable: bool) -> Diff:
    """The diff between two sets of normalised inputs.

    A replacement that keeps the name deletes first, unless the name is a generated one.
    """
    plain = unwrap(new)
    replacing = (*_IDENTITY, *_replacing(plain, is_secret_mutable, is_config_map_mutable))
    changes = {
        path: replace(change, replace=_lies_under(path, replacing))
        for path, change in diff_properties(old, new).items()
    }
    before, after = unwrap(old).get("metadata", {}), plain["metadata"]
    is_autonamed = (after.get("annotations") or {}).get(AUTONAMED) == "true"
    keeps_name = all(before.get(key) == after.get(key) for key in ("name", "namespace"))
    is_replaced = any(change.replace for change in changes.values())
    return Diff(changes, delete_before_replace=is_replaced and keeps_name and not is_autonamed)


def _replacing(document: Props, is_secret_mutable: bool, is_config_map_mutable: bool) -> tuple[str, ...]:
    kind = (document.get("apiVersion", ""), document.get("kind", ""))
    is_immutable = document.get("immutable") is True
    if kind == ("v1", "Secret"):
        return ("type",) if is_secret_mutable and not is_immutable else ("type", "stringData", "data")
    if kind == ("v1", "ConfigMap"):
        return () if is_config_map_mutable and not is_immutable else ("binaryData", "data")
    return _REPLACED_BY.get(kind, ())


def _lies_under(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith((f"{place}.", f"{place}[")) for place in places)
