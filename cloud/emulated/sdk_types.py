"""Argument and output types of the installed Pulumi SDKs, read from their generated classes.

The emulated plugins have no schema of their own: they accept exactly what the program's SDK can send, and return
exactly what its output classes can hold.
"""

from __future__ import annotations

import collections.abc
import difflib
import enum
import inspect
import itertools
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, TypeAlias

import pulumi
from pulumi import _types as sdk

from plugin import UNKNOWN, Props, Secret, Value, unwrap

# Secret marks of outputs, as the engine and Pulumi's Terraform bridge set them (`plugin.AnnotateSecrets`).


def mark_secrets(state: Props, inputs: Props) -> Props:
    """The outputs, each secret where the input at the same path is."""
    return {name: _marked(value, inputs[name]) if name in inputs else value for name, value in state.items()}


def _marked(value: Value, origin: Value) -> Value:
    if isinstance(origin, Secret):
        return value if isinstance(value, Secret) else Secret(value)
    if isinstance(value, dict) and isinstance(origin, dict):
        return mark_secrets(value, origin)
    if isinstance(value, list) and isinstance(origin, list):
        return [_marked(item, origin[index]) if index < len(origin) else item for index, item in enumerate(value)]
    return value


# In a class with a field of the name `type`.
_Class: TypeAlias = type
_SCALARS: Final[Mapping[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}


@dataclass(frozen=True)
class PropertyType:
    """The type of a property: an object of a generated class or of one of several, a list, a map, a scalar, or any.

    `choices` are the values of an enum; `item` is the type of a list's or map's elements; `classes` are a union's, by
    the value in an object that names its class.
    """

    kind: Literal["object", "union", "list", "map", "scalar", "any"]
    type: type = object
    item: PropertyType | None = None
    choices: tuple[str, ...] = ()
    classes: tuple[tuple[str, _Class], ...] = ()

    def of(self, value: Mapping[str, Value]) -> PropertyType | None:
        """The type of an object in a union, None if it names no class."""
        named = [cls for name, cls in self.classes if name in (unwrap(item) for item in value.values())]
        return PropertyType("object", named[0]) if named else None


@cache
def properties(cls: type) -> Mapping[str, PropertyType]:
    """Wire names of a generated class (arguments, outputs or a resource) and the type of each."""
    if issubclass(cls, pulumi.Resource):
        hints = sdk.resource_types(cls)
        # Only those of the class itself: `id` and `urn` are the engine's.
        return {name: _shape(hint) for name, hint in hints.items() if name not in {"id", "urn"}}
    hints = sdk.input_type_types(cls) if sdk.is_input_type(cls) else sdk.output_type_types(cls)
    return {name: _shape(hint) for name, hint in hints.items()}


@cache
def required(cls: type) -> tuple[str, ...]:
    """Wire names of the arguments that have no default."""
    wire_names = sdk.input_type_py_to_pulumi_names(cls)
    parameters = inspect.signature(cls).parameters.values()
    return tuple(wire_names[parameter.name] for parameter in parameters if parameter.default is inspect.Parameter.empty)


def problems(cls: type, values: Mapping[str, Value], path: str = "", also: tuple[str, ...] = ()) -> Iterator[str]:
    """Messages for everything in `values` that is not an argument of `cls`, azure-native's own where it has one.

    No message contains a value: it may be secret. `also` are further names allowed at the top (those a provider adds).
    """
    known = properties(cls)
    for name in required(cls):
        if values.get(name) is None:
            yield f"missing required property '{_join(path, name)}'"
    for name, value in values.items():
        if name in known:
            yield from _value_problems(known[name], value, _join(path, name))
        elif name not in also:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(sorted(known))}"
            yield f"'{_join(path, name)}' is not a property of {cls.__name__} in the installed SDK{meant}"


def _value_problems(shape: PropertyType, value: Value, path: str) -> Iterator[str]:
    plain = unwrap(value)
    match shape.kind:
        case _ if plain is UNKNOWN or plain is None:
            return
        case "object" if isinstance(plain, dict):
            yield from problems(shape.type, plain, path)
        case "union" if isinstance(plain, dict):
            named = shape.of(plain)
            if named is None:
                yield f"'{path}' should name its type: one of {', '.join(name for name, _ in shape.classes)}"
            else:
                yield from problems(named.type, plain, path)
        case "list" if isinstance(plain, list):
            for index, item in enumerate(plain):
                yield from _value_problems(_item(shape), item, f"{path}[{index}]")
        case "map" if isinstance(plain, dict):
            for name, item in plain.items():
                yield from _value_problems(_item(shape), item, _join(path, name))
        case "scalar" if _is_a(shape.type, plain):
            if shape.choices and plain not in shape.choices:
                yield f"'{path}' should be one of {', '.join(shape.choices)}"
        case "any":
            return
        case "scalar" if shape.type is int and isinstance(plain, float):
            yield f"'{path}' must be an integer"
        case _:
            expected = _SCALARS[shape.type] if shape.kind == "scalar" else {"list": "array"}.get(shape.kind, "object")
            yield f"'{path}' should be of type '{expected}' but got {_article(plain)}"


def _is_a(expected: type, value: Value) -> bool:
    if expected is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, expected) and isinstance(value, bool) == (expected is bool)


def _article(value: Value) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return "a boolean" if isinstance(value, bool) else "a string" if isinstance(value, str) else "a number"


def _item(shape: PropertyType) -> PropertyType:
    return shape.item or PropertyType("any")


def _shape(hint: Any) -> PropertyType:
    members = [member for member in _members(hint) if not typing.is_typeddict(member)]
    enums = [member for member in members if isinstance(member, type) and issubclass(member, enum.Enum)]
    if enums:
        return PropertyType("scalar", str, choices=tuple(str(member.value) for member in enums[0]))
    objects = [member for member in members if isinstance(member, type) and sdk.is_input_type(member)]
    if len(objects) > 1:
        return PropertyType("union", classes=_by_name(objects))
    for member in members:
        origin = typing.get_origin(member)
        if origin is collections.abc.Mapping:
            return PropertyType("map", item=_shape(typing.get_args(member)[1]))
        if origin is collections.abc.Sequence:
            return PropertyType("list", item=_shape(typing.get_args(member)[0]))
        if isinstance(member, type) and (sdk.is_input_type(member) or sdk.is_output_type(member)):
            return PropertyType("object", member)
    scalars = [member for member in members if member in _SCALARS]
    return PropertyType("scalar", scalars[0]) if scalars else PropertyType("any")


def _by_name(classes: list[type]) -> tuple[tuple[str, type], ...]:
    """Classes of a union by the value that names each: what differs in their names."""
    names = [cls.__name__ for cls in classes]
    ends = zip(*(reversed(name) for name in names), strict=False)
    shared = len(list(itertools.takewhile(lambda letters: len(set(letters)) == 1, ends)))
    return tuple((name[:-shared], cls) for name, cls in zip(names, classes, strict=True))


def _members(hint: Any) -> Iterator[Any]:
    """The types in a union, without those for values that come later (`Awaitable`, `Output`) or are missing (None)."""
    if typing.get_origin(hint) is typing.Union:
        for part in typing.get_args(hint):
            yield from _members(part)
    elif hint is not type(None) and typing.get_origin(hint) not in {collections.abc.Awaitable, pulumi.Output}:
        yield hint


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
