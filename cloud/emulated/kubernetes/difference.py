"""Which changes there are, and which of them replace the object (pulumi-kubernetes `provider/pkg/provider/diff.go`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from emulated.kubernetes.inputs import AUTONAMED
from emulated.kubernetes.replacements import replacing_fields
from plugin import Diff, PropertyChange, Props, diff_properties, unwrap

_INDEX: Final = re.compile(r"\[\d+\]")


def difference(old: Props, new: Props, *, is_secret_mutable: bool, is_config_map_mutable: bool) -> Diff:
    """The diff between two sets of normalised inputs.

    A replacement that keeps the name deletes first, unless the name is a generated one. As the real one does, it calls
    a deletion alone one of inputs, and gives paths without the names of the properties (`addPatchValueToDiff`).
    """
    plain = unwrap(new)
    replacing = replacing_fields(
        plain, is_secret_mutable=is_secret_mutable, is_config_map_mutable=is_config_map_mutable
    )
    changes = {
        path: replace(change, replace=_replaces(path, change, replacing), input=change.kind == "delete")
        for path, change in diff_properties(old, new).items()
    }
    before, after = unwrap(old).get("metadata", {}), plain["metadata"]
    is_autonamed = (after.get("annotations") or {}).get(AUTONAMED) == "true"
    keeps_name = all(before.get(key) == after.get(key) for key in ("name", "namespace"))
    is_replaced = any(change.replace for change in changes.values())
    return Diff(changes, delete_before_replace=is_replaced and keeps_name and not is_autonamed, has_names=False)


def _replaces(path: str, change: PropertyChange, places: Iterable[str]) -> bool:
    """Whether the change is one of a replacing field, of a part of one, or adds an object that has one."""
    shapes = {path, _INDEX.sub("[*]", path)}
    return any(
        _lies_under(shape, place) or (change.kind == "add" and _lies_under(place, shape))
        for shape in shapes
        for place in places
    )


def _lies_under(path: str, place: str) -> bool:
    return path == place or path.startswith((f"{place}.", f"{place}["))
