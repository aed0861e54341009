"""Property values as the engine sends them: JSON values, unknowns and secrets.

On the wire (`google.protobuf.Struct`) a secret is an object that carries a signature key, and an unknown value is a
fixed string. The constants are those of Pulumi's SDKs (sdk/go/common/resource/properties.go, plugin/rpc.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from google.protobuf import struct_pb2

# None, bool, int, float, str, list, dict, UNKNOWN or Secret, nested at will; `Any` because JSON is recursive.
Value: TypeAlias = Any
Props: TypeAlias = dict[str, Any]

_SIGNATURE_KEY: Final = "4dabf18193072939515e22adb298388d"
_SECRET_SIGNATURE: Final = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT_SIGNATURE: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWN_WIRE: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class _Unknown:
    """A value that exists only after the resource it comes from was created (previews)."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, repr=False)
class Secret:
    """A value the engine encrypts in the state and masks on screen. Its `repr` does not show it."""

    value: Value

    def __repr__(self) -> str:
        return "Secret(…)"


def to_struct(properties: Mapping[str, Value]) -> struct_pb2.Struct:
    """Marshal properties for the engine."""
    return struct_pb2.Struct(fields={key: _to_wire(value) for key, value in properties.items()})


def from_struct(struct: struct_pb2.Struct) -> Props:
    """Unmarshal properties from the engine. Integral numbers become `int`: the wire knows only doubles."""
    return {key: _from_wire(value) for key, value in struct.fields.items()}


def unwrap(value: Value) -> Value:
    """The same value without its secret marks, at any depth."""
    if isinstance(value, Secret):
        return unwrap(value.value)
    if isinstance(value, dict):
        return {key: unwrap(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unwrap(item) for item in value]
    return value


def contains_unknown(value: Value) -> bool:
    """Whether any part of the value is not known yet."""
    plain = unwrap(value)
    if isinstance(plain, dict):
        return any(contains_unknown(item) for item in plain.values())
    if isinstance(plain, list):
        return any(contains_unknown(item) for item in plain)
    return plain is UNKNOWN


def contains_secret(value: Value) -> bool:
    """Whether any part of the value is secret."""
    if isinstance(value, dict):
        return any(contains_secret(item) for item in value.values())
    if isinstance(value, list):
        return any(contains_secret(item) for item in value)
    return isinstance(value, Secret)


def _to_wire(value: Value) -> struct_pb2.Value:
    match value:
        case None:
            return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
        case Secret():
            return struct_pb2.Value(
                struct_value=struct_pb2.Struct(
                    fields={
                        _SIGNATURE_KEY: struct_pb2.Value(string_value=_SECRET_SIGNATURE),
                        "value": _to_wire(value.value),
                    }
                )
            )
        case bool():
            return struct_pb2.Value(bool_value=value)
        case int() | float():
            return struct_pb2.Value(number_value=value)
        case str():
            return struct_pb2.Value(string_value=value)
        case dict():
            return struct_pb2.Value(struct_value=to_struct(value))
        case list() | tuple():
            return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_to_wire(item) for item in value]))
        case _ if value is UNKNOWN:
            return struct_pb2.Value(string_value=_UNKNOWN_WIRE)
        case _:
            raise TypeError(f"a {type(value).__name__} is not a property value")


def _from_wire(value: struct_pb2.Value) -> Value:
    match value.WhichOneof("kind"):
        case "null_value" | None:
            return None
        case "bool_value":
            return value.bool_value
        case "number_value":
            return int(value.number_value) if value.number_value.is_integer() else value.number_value
        case "string_value":
            return UNKNOWN if value.string_value == _UNKNOWN_WIRE else value.string_value
        case "list_value":
            return [_from_wire(item) for item in value.list_value.values]
        case _:
            return _from_object(value.struct_value)


def _from_object(struct: struct_pb2.Struct) -> Value:
    signature = struct.fields[_SIGNATURE_KEY].string_value if _SIGNATURE_KEY in struct.fields else ""
    if signature not in {_SECRET_SIGNATURE, _OUTPUT_SIGNATURE}:
        return from_struct(struct)
    inner = _from_wire(struct.fields["value"]) if "value" in struct.fields else UNKNOWN
    is_secret = signature == _SECRET_SIGNATURE or struct.fields["secret"].bool_value
    return Secret(inner) if is_secret else inner
