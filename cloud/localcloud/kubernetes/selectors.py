"""Label and field selectors (apimachinery `pkg/labels/selector.go`, `pkg/fields/selector.go`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from localcloud.kubernetes.errors import bad_request
from localcloud.kubernetes.kinds import ResourceKind

Matches = Callable[[Mapping[str, Any]], bool]

_SET: Final = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)$")
_LABEL_EQUALITY: Final = re.compile(r"(?P<key>[\w./-]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[\w.-]*)", re.ASCII)
_EQUALITY: Final = re.compile(r"^(?P<key>[^!=\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>.*)$")
_COMMAS_OUTSIDE_PARENTHESES: Final = re.compile(r",(?![^(]*\))")


def label_selector(text: str) -> Matches:
    """`a=b,c!=d,e in (f,g),h,!i`; empty matches everything. Raises a 400 `StatusError` for anything else."""
    tests = [_label_test(part.strip()) for part in _COMMAS_OUTSIDE_PARENTHESES.split(text) if part.strip()]

    def matches(document: Mapping[str, Any]) -> bool:
        labels = document["metadata"].get("labels") or {}
        return all(test(labels) for test in tests)

    return matches


def field_selector(kind: ResourceKind, text: str) -> Matches:
    """`metadata.name=x,type!=y` over the fields that the kind makes selectable; others are a 400 `StatusError`."""
    supported = ("metadata.name", *(("metadata.namespace",) if kind.namespaced else ()), *kind.selectable)
    tests: list[tuple[str, str, bool]] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _EQUALITY.match(part)
        if match is None:
            raise bad_request(f"invalid field selector: '{part}'; can't understand it")
        if match["key"] not in supported:
            raise bad_request(
                f'field label "{match["key"]}" not supported for {kind.kind}: known are {", ".join(supported)}'
            )
        tests.append((match["key"], match["value"], match["operator"] != "!="))
    return lambda document: all(((field_at(document, path) or "") == wanted) is equal for path, wanted, equal in tests)


def field_at(document: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, None if there is none."""
    value: Any = document
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _label_test(part: str) -> Matches:
    if match := _SET.match(part):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        if match["operator"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _LABEL_EQUALITY.fullmatch(part):
        key, value = match["key"], match["value"]
        if match["operator"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if re.fullmatch(r"!\s*[\w./-]+", part):
        absent = part[1:].strip()
        return lambda labels: absent not in labels
    if re.fullmatch(r"[\w./-]+", part):
        return lambda labels: part in labels
    raise bad_request(f"unable to parse requirement: {part!r} is not a label selector")
