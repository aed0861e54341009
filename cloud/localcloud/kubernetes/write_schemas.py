"""Writes `builtin_schemas.json`: OpenAPI schemas of the built-in kinds, taken from the official Python client's models.

    python -m localcloud.kubernetes.write_schemas

The client is generated from the API server's own OpenAPI document; reading its 700 models takes a second and a half,
the file with the ones that matter a few milliseconds. A test fails when the file and the installed client disagree.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from kubernetes import client

from localcloud.kubernetes.kinds import KINDS

FILE: Final = Path(__file__).with_name("builtin_schemas.json")

_SCALARS: Final[dict[str, dict[str, Any]]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "float": {"type": "number"},
    "datetime": {"type": "string", "format": "date-time"},
    "object": {},
}
# Events in the core group are the client's CoreV1Event.
_MODELS: Final = {"Event": "CoreV1Event"}
# resource.Quantity: the client's models call it a string, the API server takes numbers, too.
_QUANTITIES: Final = {
    ("V1ResourceRequirements", "limits"),
    ("V1ResourceRequirements", "requests"),
    ("V1PodSpec", "overhead"),
}


def schemas() -> dict[str, Any]:
    """Schema by model name, with the model of each built-in kind under the kind's own name."""
    collected: dict[str, Any] = {}
    for kind in KINDS:
        if not kind.custom:
            collected[kind.kind] = _model(_MODELS.get(kind.kind, f"V1{kind.kind}"), collected)
    return dict(sorted(collected.items()))


def _model(name: str, collected: dict[str, Any]) -> dict[str, Any]:
    model = getattr(client, name)
    properties = {
        model.attribute_map[attribute]: _type(name, model.attribute_map[attribute], type_, collected)
        for attribute, type_ in model.openapi_types.items()
    }
    required = sorted(model.attribute_map[name] for name, field in model.model_fields.items() if field.is_required())
    schema: dict[str, Any] = {"type": "object", "properties": dict(sorted(properties.items()))}
    if required:
        schema["required"] = required
    return schema


def _type(model: str, property_: str, type_: str, collected: dict[str, Any]) -> dict[str, Any]:
    if (model, property_) in _QUANTITIES:
        return {"type": "object", "additionalProperties": {}}
    if inner := re.fullmatch(r"[Ll]ist\[(.+)\]", type_):
        return {"type": "array", "items": _type(model, property_, inner[1], collected)}
    if inner := re.fullmatch(r"[Dd]ict\[str, (.+)\]", type_):
        return {"type": "object", "additionalProperties": _type(model, property_, inner[1], collected)}
    if type_ in _SCALARS:
        return _SCALARS[type_]
    if type_ not in collected:
        collected[type_] = {}  # placeholder while a recursive model is read
        collected[type_] = _model(type_, collected)
    return {"$ref": f"#/components/schemas/{type_}"}


if __name__ == "__main__":
    FILE.write_text(json.dumps(schemas(), indent=1) + "\n", encoding="utf-8")
