"""What an object of each kind may contain: OpenAPI schemas, and a check with the API server's messages."""

from __future__ import annotations

import base64
import binascii
import json
import re
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from localcloud.core import yaml_text
from localcloud.kubernetes.errors import Cause
from localcloud.kubernetes.kinds import ResourceKind, definitions, field_at, version

Schema = dict[str, Any]

REFERENCE: Final = "#/components/schemas/"
_HERE: Final = Path(__file__).parent
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@cache
def components() -> dict[str, Schema]:
    """Every schema by name; a kind's own schema has the kind's name."""
    schemas: dict[str, Schema] = json.loads((_HERE / "builtin_schemas.json").read_text(encoding="utf-8"))
    for name, defaults in yaml_text.load((_HERE / "defaults.yaml").read_bytes()).items():
        for property_, default in defaults.items():
            schemas[name]["properties"][property_]["default"] = default
    for definition in definitions():
        schema = version(definition)["schema"]["openAPIV3Schema"]
        # As in every definition, `metadata` is any object.
        metadata = {"metadata": {"$ref": f"{REFERENCE}V1ObjectMeta"}}
        schemas[definition["spec"]["names"]["kind"]] = {**schema, "properties": {**schema["properties"], **metadata}}
    return schemas


@dataclass
class Findings:
    """The problems of an object: unknown fields (an error only under strict validation) and others."""

    unknown: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)


def check(kind: ResourceKind, document: dict[str, Any]) -> tuple[dict[str, Any], Findings]:
    """The document without unknown fields, and all findings about it."""
    findings = Findings()
    pruned = _check(components()[kind.kind], document, "", findings)
    return pruned, findings


def _check(schema: Schema, value: Any, path: str, findings: Findings) -> Any:
    if reference := schema.get("$ref"):
        schema = components()[reference.removeprefix(REFERENCE)]
    if (type_ := schema.get("type")) is None:
        return value
    if not isinstance(value, _TYPES[type_]) or (isinstance(value, bool) and type_ != "boolean"):
        findings.causes.append(
            Cause(
                path,
                f'Invalid value: "{_name(value)}": {path} must be of type {type_}: "{_name(value)}"',
                "FieldValueTypeInvalid",
            )
        )
        return value
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(f'"{value}"' for value in schema["enum"])
        findings.causes.append(
            Cause(path, f'Unsupported value: "{value}": supported values: {supported}', "FieldValueNotSupported")
        )
    if isinstance(value, str):
        _check_text(schema, value, path, findings)
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            message = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
            findings.causes.append(Cause(path, message, "FieldValueTooMany"))
        return [_check(schema.get("items", {}), item, f"{path}[{index}]", findings) for index, item in enumerate(value)]
    return _check_object(schema, value, path, findings) if isinstance(value, dict) else value


def _check_text(schema: Schema, value: str, path: str, findings: Findings) -> None:
    """Length and pattern; Go's patterns are searched for, and those in use mean the same in Python."""
    if len(value) > schema.get("maxLength", len(value)):
        message = f"Too long: may not be more than {schema['maxLength']} bytes"
        findings.causes.append(Cause(path, message, "FieldValueTooLong"))
    if len(value) < (least := schema.get("minLength", 0)):
        message = f'Invalid value: "{value}": {path} in body should be at least {least} chars long'
        findings.causes.append(Cause(path, message))
    if "pattern" in schema and not re.search(schema["pattern"], value):
        message = f"Invalid value: \"{value}\": {path} in body should match '{schema['pattern']}'"
        findings.causes.append(Cause(path, message))


def _check_object(schema: Schema, value: dict[str, Any], path: str, findings: Findings) -> dict[str, Any]:
    defaults = {name: member["default"] for name, member in schema.get("properties", {}).items() if "default" in member}
    value = {**deepcopy(defaults), **{key: item for key, item in value.items() if item is not None}}
    for name in schema.get("required", ()):
        if value.get(name) is None:
            findings.causes.append(Cause(_join(path, name), "Required value", "FieldValueRequired"))
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        additional = {}
    pruned: dict[str, Any] = {}
    for key, item in value.items():
        known = (properties or {}).get(key, additional)
        if known is None and properties is not None:
            findings.unknown.append(_join(path, key))
        else:
            pruned[key] = _check(known or {}, item, _join(path, key), findings)
    return pruned


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _name(value: Any) -> str:
    for name, types in _TYPES.items():
        if isinstance(value, types) and not (isinstance(value, bool) and name != "boolean"):
            return name
    return "null"


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
                shown = f'"{now}"' if isinstance(now, str) else now
                causes.append(Cause(path, f"Invalid value: {shown}: field is immutable"))
    match kind.kind:
        case "Secret" | "ConfigMap":
            causes += _data_problems(kind, document, old)
        case "Deployment" | "ReplicaSet":
            causes += _selector_problems(document["spec"], kind.kind.lower())
            causes += _pod_problems(document["spec"]["template"].get("spec", {}), "spec.template.spec")
        case "Pod":
            causes += _pod_problems(document["spec"], "spec")
        case "PodDisruptionBudget":
            # `pkg/apis/policy/validation/validation.go`
            spec = document.get("spec", {})
            if "minAvailable" in spec and "maxUnavailable" in spec:
                both = f"Invalid value: {spec}: minAvailable and maxUnavailable cannot be both set"
                causes.append(Cause("spec", both))
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
