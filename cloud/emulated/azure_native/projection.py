"""Converts property values between the program's form and ARM's, as azure-native does (`provider/pkg/convert`).

The SDK shows some levels of ARM's JSON flattened away (`properties.clientId` is `clientId`) and renames a few keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from emulated.azure_native.table import ResourceRow
from emulated.sdk_types import PropertyType, properties
from localcloud.core import yaml_text
from plugin import UNKNOWN, Props, Secret, Value, unwrap

API_VERSION: Final = "azureApiVersion"
_FILE: Final[Mapping[str, Any]] = yaml_text.load(Path(__file__).with_suffix(".yaml").read_bytes())
_WIRE_NAMES: Final[Mapping[str, Mapping[str, str]]] = _FILE["wireNames"]
_STRING_SETS, _FLATTENED, _BESIDE_PROPERTIES, _ENVELOPE = (
    frozenset(_FILE[name].split()) for name in ("stringSets", "flattened", "besideProperties", "envelope")
)
_ELSEWHERE: Final = {name: frozenset(arguments.split()) for name, arguments in _FILE["elsewhere"].items()}


def request_body(row: ResourceRow, inputs: Props) -> dict[str, Any]:
    """The JSON body of the PUT for these inputs."""
    plain = unwrap(inputs)
    body: dict[str, Any] = {}
    for name, shape in properties(row.arguments).items():
        if name in plain and plain[name] is not None and name not in row.parameters:
            nested = row.flattened and name not in _ENVELOPE
            target = body.setdefault("properties", {}) if nested else body
            target[_wire_name(row.arguments, name)] = _to_wire(shape, plain[name])
    return body


def misplaced(shape: PropertyType, value: Value, path: str) -> Iterator[str]:
    """The paths of inputs, at `path` or below, that azure-native has elsewhere in a request than `request_body`."""
    match shape.kind, unwrap(value):
        case "object", dict(members):
            elsewhere = _ELSEWHERE.get(shape.type.__name__)
            for name, item in members.items():
                if elsewhere is not None and (name in elsewhere or not (elsewhere or name in _BESIDE_PROPERTIES)):
                    yield f"{path}.{name}"
                elif inner := properties(shape.type).get(name):
                    yield from misplaced(inner, item, f"{path}.{name}")
        case "list", list(items) if shape.item is not None:
            for index, item in enumerate(items):
                yield from misplaced(shape.item, item, f"{path}[{index}]")


def outputs(cls: type, response: Mapping[str, Any]) -> Props:
    """The part of a response that the SDK's class has properties for."""
    props: Props = {}
    shapes = properties(cls)
    inner = response.get("properties")
    flattened: Mapping[str, Any] = inner if isinstance(inner, dict) and "properties" not in shapes else {}
    for name, shape in shapes.items():
        wire_name = _wire_name(cls, name)
        value = response.get(wire_name, flattened.get(wire_name))
        if value is not None:
            props[name] = _from_wire(shape, value)
    return props


def preview(cls: type, inputs: Mapping[str, Value]) -> Props:
    """Outputs as a preview knows them: the inputs, and UNKNOWN for all that the service decides."""
    return {
        name: _preview_value(shape, inputs[name]) if name in inputs else UNKNOWN
        for name, shape in properties(cls).items()
        if name != API_VERSION
    }


def writable(row: ResourceRow, state: Props) -> Props:
    """The part of the outputs that is also an input, without what the service alone decides."""
    return {name: value for name, value in _project(row.arguments, unwrap(state)).items() if name not in row.parameters}


def imported_inputs(row: ResourceRow, path_values: Mapping[str, str], state: Props) -> Props:
    """Inputs that would make a resource like this one; empty collections are left out."""
    kept = {name: _without_empty(value) for name, value in writable(row, state).items()}
    return {**path_values, **{name: value for name, value in kept.items() if value is not None}}


def merge_drift(inputs: Props, old: Mapping[str, Value], new: Mapping[str, Value]) -> Props:
    """`inputs` with what differs between the old and the new writable outputs, and nothing that does not."""
    merged = {name: value for name, value in inputs.items() if name not in old or name in new}
    for name, value in new.items():
        if name not in old:
            merged[name] = value
        elif old[name] != value:
            merged[name] = _merge_value(inputs[name], old[name], value) if name in inputs else value
    return merged


def _merge_value(base: Value, old: Value, new: Value) -> Value:
    if isinstance(base, Secret):
        return Secret(_merge_value(base.value, old, new))
    if isinstance(base, dict) and isinstance(old, dict) and isinstance(new, dict):
        return merge_drift(base, old, new)
    if isinstance(base, list) and isinstance(old, list) and isinstance(new, list):
        shared = min(len(base), len(old))
        return [
            _merge_value(base[index], old[index], item) if index < shared else item for index, item in enumerate(new)
        ]
    return new


def _project(cls: type, values: Mapping[str, Value]) -> Props:
    return {name: _project_value(shape, values[name]) for name, shape in properties(cls).items() if name in values}


def _inside(shape: PropertyType, value: Value, convert: Callable[[PropertyType, Value], Value]) -> Value:
    """A list or map with its items converted, any other value as it is."""
    if shape.kind == "list" and shape.item is not None and isinstance(value, list):
        return [convert(shape.item, item) for item in value]
    if shape.kind == "map" and shape.item is not None and isinstance(value, dict):
        return {name: convert(shape.item, item) for name, item in value.items()}
    return value


def _project_value(shape: PropertyType, value: Value) -> Value:
    if shape.kind == "object" and isinstance(value, dict):
        return _project(shape.type, value)
    if shape.kind == "list" and isinstance(value, dict):
        return sorted(value)  # a string set
    return _inside(shape, value, _project_value)


def _to_wire(shape: PropertyType, value: Value) -> Value:
    if shape.kind != "object" or not isinstance(value, dict):
        return _inside(shape, value, _to_wire)
    shapes = properties(shape.type)
    sent = {
        _wire_name(shape.type, name): (
            {name: {} for name in item} if name in _STRING_SETS else _to_wire(shapes[name], item)
        )
        for name, item in value.items()
    }
    return _with_properties(sent) if shape.type.__name__ in _FLATTENED else sent


def _with_properties(sent: dict[str, Any]) -> dict[str, Any]:
    inner = {name: item for name, item in sent.items() if name not in _BESIDE_PROPERTIES}
    beside = {name: item for name, item in sent.items() if name in _BESIDE_PROPERTIES}
    return {**beside, "properties": inner} if inner else beside


def _from_wire(shape: PropertyType, value: Any) -> Value:
    is_object = shape.kind == "object" and isinstance(value, dict)
    return outputs(shape.type, value) if is_object else _inside(shape, value, _from_wire)


def _preview_value(shape: PropertyType, value: Value) -> Value:
    if isinstance(value, Secret):
        return Secret(_preview_value(shape, value.value))
    if shape.kind == "object" and isinstance(value, dict):
        return preview(shape.type, value)
    if shape.kind == "map" and isinstance(value, list):
        return UNKNOWN  # a string set
    return _inside(shape, value, _preview_value)


def _wire_name(cls: type, name: str) -> str:
    renamed = next((names for start, names in _WIRE_NAMES.items() if cls.__name__.startswith(start)), {})
    return renamed.get(name, name)


def _without_empty(value: Value) -> Value:
    """The value without empty objects and arrays at any depth; None if nothing is left."""
    if isinstance(value, dict):
        kept = {name: item for name, member in value.items() if (item := _without_empty(member)) is not None}
        return kept or None
    if isinstance(value, list):
        return [item for member in value if (item := _without_empty(member)) is not None] or None
    return value
