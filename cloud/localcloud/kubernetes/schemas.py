"""What an object of each kind may contain: OpenAPI schemas, and a check with the API server's messages."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from localcloud.kubernetes.definitions import definitions, version
from localcloud.kubernetes.errors import Cause
from localcloud.kubernetes.kinds import ResourceKind

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
