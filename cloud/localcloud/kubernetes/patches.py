"""The kinds of patch: JSON merge (RFC 7386), JSON (RFC 6902), strategic merge. Server-side apply is `applied.py`."""

from __future__ import annotations

from typing import Any, Final

import jsonpatch

from localcloud.kubernetes.errors import bad_request, patch_refused

MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

# `patchMergeKey` of the built-in types whose lists merge item by item (k8s.io/api core/v1, meta/v1 struct tags).
_MERGE_KEYS: Final = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "secrets": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}


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
