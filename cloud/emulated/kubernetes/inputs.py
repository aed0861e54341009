"""Inputs as a program writes them, and as derived from a live object."""

from __future__ import annotations

import base64
import secrets
from typing import Any, Final

from plugin import UNKNOWN, Props, Secret, Value, contains_secret, contains_unknown, unwrap

AUTONAMED: Final = "pulumi.com/autonamed"
SKIP_AWAIT: Final = "pulumi.com/skipAwait"
TIMEOUT: Final = "pulumi.com/timeoutSeconds"

# Metadata that only the server sets.
_READ_ONLY: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)
# Written by `kubectl apply`; for a Secret it holds the data in clear.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# Annotations that are not taken over from an imported object; the second is the Deployment controller's.
_NOT_IMPORTED: Final = (_LAST_APPLIED, "deployment.kubernetes.io/revision")
_SECRET_FIELDS: Final = ("data", "stringData")


def normalised(inputs: Props) -> Props:
    """Inputs without nulls and read-only metadata; a Secret's known `stringData` as `data`, all of it marked secret.

    Different notations of the same object become equal, so that they are not a diff.
    """
    document = without_nulls(inputs)
    metadata = {key: value for key, value in (document.get("metadata") or {}).items() if key not in _READ_ONLY}
    document = {**document, "metadata": metadata}
    if document.get("kind") != "Secret":
        return document
    text = unwrap(document.get("stringData"))
    if text and not contains_unknown(text):
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
        document["data"] = {**(unwrap(document.get("data")) or {}), **encoded}
        del document["stringData"]
    return _with_secret_data(document)


def named(inputs: Props, old: Props | None, urn: str) -> Props:
    """Inputs with a name: their own, the generated one of the old inputs, or `<resource name>-<8 hex digits>`."""
    metadata = dict(inputs["metadata"])
    if metadata.get("name") or metadata.get("generateName"):
        return inputs
    before = unwrap((old or {}).get("metadata") or {})
    kept = before.get("name") if (before.get("annotations") or {}).get(AUTONAMED) == "true" else None
    metadata["name"] = kept or f"{urn.rsplit('::', 1)[-1]}-{secrets.token_hex(4)}"
    metadata["annotations"] = {**(metadata.get("annotations") or {}), AUTONAMED: "true"}
    return {**inputs, "metadata": metadata}


def placed(inputs: Props, namespace: str | None) -> Props:
    """Inputs in `namespace` unless they name one; None takes the namespace of a cluster-wide kind away."""
    metadata = dict(inputs["metadata"])
    if namespace is None:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = namespace
    return {**inputs, "metadata": metadata}


def state_of(live: dict[str, Any], inputs: Props) -> Props:
    """The outputs for a live object: all of it but the server's bookkeeping, secret where the inputs are."""
    metadata = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    if _LAST_APPLIED in metadata.get("annotations", {}):
        metadata["annotations"] = {key: text for key, text in metadata["annotations"].items() if key != _LAST_APPLIED}
    return _with_secret_data(_marked({**live, "metadata": metadata}, inputs))


def inputs_of(live: dict[str, Any], inputs: Props) -> Props:
    """The inputs that would produce the live object, limited to the fields of the program's own inputs.

    Fields that the inputs do not have (defaults, status) are not drift; fields they have get the live value, or go.
    Without inputs (an import) everything but server fields and status counts, defaults too (`Read` in
    `provider/pkg/provider/provider.go`).
    """
    if inputs:
        return _with_secret_data(_marked(_pruned(live, unwrap(inputs)), inputs))
    metadata = {key: value for key, value in live["metadata"].items() if key not in _READ_ONLY}
    annotations = {key: text for key, text in metadata.pop("annotations", {}).items() if key not in _NOT_IMPORTED}
    if annotations:
        metadata["annotations"] = annotations
    return _with_secret_data({key: value for key, value in live.items() if key != "status"} | {"metadata": metadata})


def previewed(live: dict[str, Any], inputs: Props) -> Props:
    """Outputs for the answer of a dry run: what only the real write decides is unknown, the status is left out."""
    state = state_of(live, inputs)
    metadata = dict(state["metadata"])
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        metadata[key] = UNKNOWN
    return {key: value for key, value in state.items() if key != "status"} | {"metadata": metadata}


def merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) that writes all of `new` and takes away what only `old` has.

    It names unchanged fields, too: a change by others to one of the program's fields is undone.
    """
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        patch[key] = merge_patch(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return patch


def without_nulls(value: Value) -> Value:
    """The value without null members of objects: Kubernetes knows no difference between null and absent."""
    if isinstance(value, Secret):
        return Secret(without_nulls(value.value))
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _pruned(live: Value, shape: Value) -> Value:
    if isinstance(live, dict) and isinstance(shape, dict):
        return {key: _pruned(live[key], shape[key]) for key in shape if key in live}
    if isinstance(live, list) and isinstance(shape, list) and shape:
        # Items beyond the program's were added by someone else: they appear, with the fields of the last item.
        return [_pruned(item, shape[min(index, len(shape) - 1)]) for index, item in enumerate(live)]
    return live


def _with_secret_data(document: Props) -> Props:
    if document.get("kind") != "Secret":
        return document
    marked: Props = {key: Secret(unwrap(document[key])) for key in _SECRET_FIELDS if key in document}
    return {**document, **marked}


def _marked(value: Value, origin: Value) -> Value:
    """`value` secret where `origin` is; a list with anything secret in it as a whole, as in the real provider."""
    if isinstance(value, dict) and isinstance(origin, dict):
        return {key: _marked(item, origin[key]) if key in origin else item for key, item in value.items()}
    return Secret(value) if contains_secret(origin) else value
