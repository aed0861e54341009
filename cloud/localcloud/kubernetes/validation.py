"""Rules beyond a schema: names, immutable fields, Secret data, selectors (kubernetes `pkg/apis/*/validation`)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

from localcloud.kubernetes.errors import Cause
from localcloud.kubernetes.kinds import ResourceKind
from localcloud.kubernetes.selectors import field_at

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DATA_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
# RBAC names are path segments, not DNS names: `system:auth-delegator` is one.
_RBAC_KINDS: Final = ("Role", "RoleBinding")
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)


def problems(kind: ResourceKind, document: dict[str, Any], old: dict[str, Any] | None) -> list[Cause]:
    """The problems of a document that fits its schema; `old` is the object before an update."""
    causes = _name_problems(kind, document["metadata"]["name"])
    if old is not None:
        for path in kind.immutable:
            if (now := field_at(document, path)) != field_at(old, path):
                causes.append(Cause(path, f"Invalid value: {_quoted(now)}: field is immutable"))
    match kind.kind:
        case "Secret" | "ConfigMap":
            causes += _data_problems(kind, document, old)
        case "Deployment" | "ReplicaSet":
            causes += _selector_problems(document["spec"], kind.kind.lower())
            causes += _pod_problems(document["spec"]["template"].get("spec", {}), "spec.template.spec")
        case "Pod":
            causes += _pod_problems(document["spec"], "spec")
        case "PodDisruptionBudget":
            causes += _disruption_problems(document.get("spec", {}))
    return causes


def merge_string_data(document: dict[str, Any]) -> None:
    """A Secret's write-only `stringData` replaces its `data`, in place (`pkg/apis/core/v1/conversion.go`)."""
    for key, text in document.pop("stringData", {}).items():
        document.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _name_problems(kind: ResourceKind, name: str) -> list[Cause]:
    if kind.kind in _RBAC_KINDS:
        return []
    if kind.kind == "Namespace" and (not re.fullmatch(_LABEL, name) or len(name) > 63):
        return [
            Cause(
                "metadata.name",
                f'Invalid value: "{name}": a lowercase RFC 1123 label of at most 63 characters is expected',
            )
        ]
    if not _SUBDOMAIN.fullmatch(name) or len(name) > 253:
        return [Cause("metadata.name", f'Invalid value: "{name}": {_SUBDOMAIN_RULE}')]
    return []


def _data_problems(kind: ResourceKind, document: dict[str, Any], old: dict[str, Any] | None) -> list[Cause]:
    causes: list[Cause] = []
    for key, value in document.get("data", {}).items():
        if not _DATA_KEY.fullmatch(key):
            causes.append(
                Cause(
                    f"data[{key}]",
                    f'Invalid value: "{key}": a valid config key must consist of '
                    "alphanumeric characters, '-', '_' or '.'",
                )
            )
        if kind.kind == "Secret" and not _is_base64(value):
            causes.append(Cause(f"data[{key}]", "Invalid value: illegal base64 data"))
    if old is not None and old.get("immutable"):
        if not document.get("immutable"):
            causes.append(
                Cause("immutable", "Forbidden: field is immutable when `immutable` is set", "FieldValueForbidden")
            )
        if document.get("data") != old.get("data"):
            causes.append(Cause("data", "Forbidden: field is immutable when `immutable` is set", "FieldValueForbidden"))
    return causes


def _selector_problems(spec: dict[str, Any], kind: str) -> list[Cause]:
    wanted = spec["selector"].get("matchLabels", {})
    labels = spec["template"].get("metadata", {}).get("labels", {})
    if not wanted and not spec["selector"].get("matchExpressions"):
        return [Cause("spec.selector", f"Invalid value: {{}}: empty selector is invalid for {kind}")]
    if any(labels.get(key) != value for key, value in wanted.items()):
        return [
            Cause(
                "spec.template.metadata.labels", f"Invalid value: {labels}: `selector` does not match template `labels`"
            )
        ]
    return []


def _disruption_problems(spec: dict[str, Any]) -> list[Cause]:
    """`pkg/apis/policy/validation/validation.go`."""
    if "minAvailable" in spec and "maxUnavailable" in spec:
        return [Cause("spec", f"Invalid value: {spec}: minAvailable and maxUnavailable cannot be both set")]
    return []


def _pod_problems(spec: dict[str, Any], path: str) -> list[Cause]:
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    causes: list[Cause] = []
    if not spec.get("containers"):
        causes.append(Cause(f"{path}.containers", "Required value", "FieldValueRequired"))
    for index, container in enumerate(spec.get("containers", [])):
        seen: set[str] = set()
        for at, mount in enumerate(container.get("volumeMounts", [])):
            place = f"{path}.containers[{index}].volumeMounts[{at}]"
            if mount["name"] not in volumes:
                causes.append(Cause(f"{place}.name", f'Not found: "{mount["name"]}"', "FieldValueNotFound"))
            if mount["mountPath"] in seen:
                causes.append(Cause(f"{place}.mountPath", f'Invalid value: "{mount["mountPath"]}": must be unique'))
            seen.add(mount["mountPath"])
    return causes


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
