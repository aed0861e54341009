"""The kinds of patch: JSON merge (RFC 7386), JSON (RFC 6902), strategic merge. Server-side apply is below."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import jsonpatch

from localcloud.core import clock, documents
from localcloud.kubernetes.errors import bad_request, patch_refused

# Server-side apply and `managedFields`: what a manager no longer applies is removed.
#
# Recorded are the fields that an object was created with, and those that each manager applies. A list is one field: it
# is applied whole. Other requests change no owner, and there are no conflicts (COVERAGE.md).

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
    before = next((e for e in entries if (e.get("manager"), e.get("operation")) == (manager, "Apply")), None)
    others = [_decoded(entry.get("fieldsV1", {})) for entry in entries if entry is not before]
    kept = [fields_of(document), *others]
    left = _without(live, _decoded(before.get("fieldsV1", {})) if before else {}, kept)
    applied: dict[str, Any] = merge(left, document)
    metadata = applied.get("metadata", {})
    entry = managed_fields(document, manager, "Apply")
    if before and {**entry, "time": before["time"]} == before:
        entry = before
    return {**applied, "metadata": {**metadata, "managedFields": [*(e for e in entries if e is not before), entry]}}


def managed_fields(document: dict[str, Any], manager: str, operation: Literal["Apply", "Update"]) -> dict[str, Any]:
    """The entry of `managedFields` for a manager that has just written this document."""
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": document.get("apiVersion", ""),
        "time": clock.rfc3339(clock.now()),
        "fieldsType": "FieldsV1",
        "fieldsV1": _encoded(fields_of(document)),
    }


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


MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

_MERGE_KEYS: Final[dict[str, str]] = documents.document(__file__, "merge keys")


def merge(target: Any, patch: Any) -> Any:
    """`patch` merged into a copy of `target`: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def strategic_merge(target: Any, patch: Any) -> Any:
    """As `merge`, but lists of the built-in types merge by their key; `$patch` and `$retainKeys` are honoured."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    if (retained := patch.get("$retainKeys")) is not None:
        merged = {key: value for key, value in merged.items() if key in retained}
    for key, value in patch.items():
        if key.startswith("$"):
            continue  # $setElementOrder and friends order lists for diffs only
        if value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            merged.pop(key, None)
        elif isinstance(value, list) and key in _MERGE_KEYS and all(isinstance(item, dict) for item in value):
            merged[key] = _merge_list(merged.get(key) or [], value, _MERGE_KEYS[key])
        else:
            merged[key] = strategic_merge(merged.get(key), value)
    return merged


def _merge_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    merged = list(target)
    for item in patch:
        at = next((index for index, old in enumerate(merged) if old.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            if at is not None:
                del merged[at]
        elif at is None:
            merged.append(item)
        else:
            merged[at] = strategic_merge(merged[at], item)
    return merged


def apply_json_patch(target: Any, operations: Any) -> Any:
    """`target` changed by the operations of RFC 6902; `target` itself stays as it is.

    `null` has no operation, as for kube-apiserver (evanphx/json-patch, `DecodePatch`): pulumi-kubernetes sends it when
    it finds no field manager to replace.

    Raises:
        StatusError: 400 for an invalid patch, 422 for a path that does not exist or a `test` that fails. The messages
            of jsonpatch show the object, which may be a Secret, so they are not passed on.
    """
    if not isinstance(operations, list | None):
        raise bad_request("a JSON patch is a list of operations")
    try:
        return jsonpatch.JsonPatch(operations or []).apply(target)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"the JSON patch is not valid: {error}") from None
    except jsonpatch.JsonPatchTestFailed:
        raise patch_refused("the value that an operation tests for is another one") from None
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        raise patch_refused("the path of an operation does not exist") from None
