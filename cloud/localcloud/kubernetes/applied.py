"""Server-side apply and `managedFields`: what a manager no longer applies is removed.

Recorded are the fields that an object was created with, and those that each manager applies. A list is one field:
it is applied whole. Other requests change no owner, and there are no conflicts (COVERAGE.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

from localcloud.core import clock
from localcloud.kubernetes.patches import merge

Fields: TypeAlias = dict[str, "Fields"]
"""The places of fields, as nested objects; one without members is a whole field."""

# These identify the object, and are not applied to it.
_IDENTITY: Final = ("apiVersion", "kind")
_NAMES: Final = ("name", "namespace")
# Before the name of a field in `fieldsV1` (structured-merge-diff `fieldpath/serialize-pe.go`).
_PREFIX: Final = "f:"


def fields_of(document: dict[str, Any]) -> Fields:
    """The fields that applying this document sets."""
    body = {key: value for key, value in document.items() if key not in _IDENTITY}
    metadata = {key: value for key, value in (body.pop("metadata", None) or {}).items() if key not in _NAMES}
    return _fields({**body, **({"metadata": metadata} if metadata else {})})


def apply(live: dict[str, Any], document: dict[str, Any], manager: str) -> dict[str, Any]:
    """`document` merged into a copy of `live`, without what only this manager has applied and no longer applies."""
    entries = live.get("metadata", {}).get("managedFields", [])
    before = _own(entries, manager)
    others = [_decoded(entry.get("fieldsV1", {})) for entry in entries if entry is not before]
    kept = [fields_of(document), *others]
    left = _without(live, _decoded(before.get("fieldsV1", {})) if before else {}, kept)
    applied: dict[str, Any] = merge(left, document)
    metadata = applied.get("metadata", {})
    entry = managed(document, manager, "Apply")
    if before and {**entry, "time": before["time"]} == before:
        entry = before
    return {**applied, "metadata": {**metadata, "managedFields": [*(e for e in entries if e is not before), entry]}}


def managed(document: dict[str, Any], manager: str, operation: Literal["Apply", "Update"]) -> dict[str, Any]:
    """The entry of `managedFields` for a manager that has just written this document."""
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": document.get("apiVersion", ""),
        "time": clock.rfc3339(clock.now()),
        "fieldsType": "FieldsV1",
        "fieldsV1": _encoded(fields_of(document)),
    }


def _own(entries: Iterable[dict[str, Any]], manager: str) -> dict[str, Any] | None:
    return next((e for e in entries if (e.get("manager"), e.get("operation")) == (manager, "Apply")), None)


def _fields(value: Any) -> Fields:
    return {key: _fields(item) for key, item in value.items()} if isinstance(value, dict) else {}


def _encoded(fields: Fields) -> dict[str, Any]:
    return {f"{_PREFIX}{key}": _encoded(inner) for key, inner in fields.items()}


def _decoded(fields: dict[str, Any]) -> Fields:
    return {key.removeprefix(_PREFIX): _decoded(inner) for key, inner in fields.items() if key.startswith(_PREFIX)}


def _without(live: Any, before: Fields, kept: list[Fields]) -> Any:
    if not isinstance(live, dict):
        return live
    left = dict(live)
    for key, inner in before.items():
        if key not in left:
            continue
        if inner and isinstance(left[key], dict):
            left[key] = _without(left[key], inner, [fields.get(key, {}) for fields in kept])
            is_gone = not left[key]
        else:
            is_gone = True
        if is_gone and not any(key in fields for fields in kept):
            del left[key]
    return left
