"""The checks of a resource's inputs, by the types that `identity/plugin_schema.py` gives them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime, timedelta
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, TypeVar, Union, get_args, get_origin, get_type_hints

from identity.credentials import rfc3339
from plugin import UNKNOWN, CheckFailure, Props, Value


class Inputs:
    """The plain inputs of Check, and what is wrong with them; an unknown value is not wrong."""

    def __init__(self, properties: Props) -> None:
        self._properties = properties
        self.failures: list[CheckFailure] = []

    def require(self, schema: Any, *, optional: Set[str] = frozenset()) -> None:
        """Refuse values of another type than the TypedDict gives their key; an optional one may be absent or empty.

        Objects, and numbers without a least value, are left to the resource's own rules.
        """
        for name, hint in get_type_hints(schema, include_extras=True).items():
            is_optional = get_origin(hint) is NotRequired
            if self._properties.get(name) in (None, "") and (is_optional or name in optional):
                continue
            kind = get_args(hint)[0] if is_optional else hint
            if not _fits(kind, self._properties.get(name)):
                self.refuse(name, _accepted(kind))

    def require_days(self, name: str, *, since: datetime) -> None:
        """Refuse a number of days that ends after the year 9999."""
        days = self._properties.get(name)
        if isinstance(days, int):
            try:
                since + timedelta(days=days)
            except OverflowError:
                self.refuse(name, f"days after {rfc3339.render(since)} that end before the year 10000")

    def refuse(self, name: str, accepted: str) -> None:
        """Note that the value called `name` is wrong, unless it is not known yet."""
        value = self._properties.get(name)
        if value is not UNKNOWN:
            self.failures.append(CheckFailure(name, f"found {_found(value)}; accepted: {accepted}"))


def _fits(kind: Any, value: Value) -> bool:
    if value is UNKNOWN:
        return True
    match get_origin(kind), get_args(kind):
        case origin, (of, *_) if origin in (Union, UnionType):
            return _fits(of, value)
        case origin, (_, bound) if origin is Annotated:
            return isinstance(value, int) and not isinstance(value, bool) and value >= bound.least
        case origin, values if origin is Literal:
            return value in values
        case origin, (of,) if origin is Sequence:
            return isinstance(value, list) and all(_fits(of, item) for item in value)
    if kind is str or isinstance(kind, TypeVar):
        return isinstance(value, str) and value != ""
    return kind is not bool or isinstance(value, bool)


def _accepted(kind: Any) -> str:
    match get_origin(kind), get_args(kind):
        case origin, (of, *_) if origin in (Union, UnionType):
            return _accepted(of)
        case origin, (_, bound) if origin is Annotated:
            return f"an integer of at least {bound.least}"
        case origin, values if origin is Literal:
            return " or ".join(values)
        case origin, (of,) if origin is Sequence:
            return f"a list, each item {_accepted(of)}"
    if kind is str or isinstance(kind, TypeVar):
        return "a string that is not empty"
    return "true or false" if kind is bool else "an object"


def _found(value: Value) -> str:
    """What a refusal shows of a value: never a string, nor what holds one, for some inputs are secret."""
    match value:
        case None:
            return "nothing"
        case bool() | int() | float():
            return repr(value)
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"
