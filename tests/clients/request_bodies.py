"""Run by the Python that has Microsoft's management libraries: do they know these requests?

Standard input is a JSON list of requests (`type`, `url`, `apiVersion`, `parameters` of the path, `body`); standard
output a JSON list with the problems of each. The libraries' models are generated from Azure's OpenAPI documents. Their
own serializer drops what it does not know, so they are only read here: members (`_attribute_map`), rules
(`_validation`), subtypes (`_subtype_map`), and enums, which are in the docstrings alone (":vartype kind: str or
~azure.….Kind").
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

# Of each type of azure-native: module, model of the body, and the function that builds the request, with its file.
_OPERATIONS: Final[Mapping[str, tuple[str, str, str]]] = json.loads(
    Path(__file__).with_name("operations.json").read_bytes()
)
_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("str", "iso-8601", "duration"), (str,)),
    **dict.fromkeys(("int", "long", "unix-time"), (int,)),
    "bool": (bool,),
    "float": (int, float),
    "object": (object,),
}
_LIMITS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "min_length": lambda value, limit: len(value) >= limit,
    "max_length": lambda value, limit: len(value) <= limit,
    "min_items": lambda value, limit: len(value) >= limit,
    "max_items": lambda value, limit: len(value) <= limit,
    "pattern": lambda value, limit: re.match(limit, value) is not None,
}


def problems(request: Mapping[str, Any]) -> Iterator[str]:
    """What the library of its type does not know in a request, or does not take."""
    module, model, builder = _OPERATIONS[request["type"].removeprefix("azure-native:")]
    yield from _address(request, f"azure.mgmt.{module}.operations", builder)
    yield from _object(_Models(f"azure.mgmt.{module}.models"), model, request["body"], "")


def _address(request: Mapping[str, Any], operations: str, builder: str) -> Iterator[str]:
    file, _, function = builder.partition(".")
    build = getattr(importlib.import_module(f"{operations}.{file}_operations"), f"build_{function}_request")
    try:
        taken = inspect.signature(build).parameters
        given = {_snake(name): value for name, value in request["parameters"].items()}
        built = build(**{name: value for name, value in given.items() if name in taken or name != "subscription_id"})
    except (TypeError, ValueError) as error:
        yield f"the path: {error}"
        return
    path, _, query = built.url.partition("?")
    # A scope in a path has a slash of its own, and Azure's own documents spell `resourcegroups` in two ways.
    if re.sub("^//+", "/", path).lower() != request["url"].lower():
        yield f"the path: {request['url']} is not {path}"
    if query != f"api-version={request['apiVersion']}":
        yield f"the API version: {request['apiVersion']} is not that of {query}"


class _Models:
    """The models of a module."""

    def __init__(self, name: str) -> None:
        self._module = importlib.import_module(name)

    def get(self, name: str) -> Any:
        """The class of a model or enum, None if there is none."""
        return getattr(self._module, name, None)


def _object(models: _Models, name: str, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {type(value).__name__} instead of an object"
        return
    model = _subtype(models, models.get(name), value)
    level: dict[str, Any] = {}
    for attribute, described in model._attribute_map.items():
        *above, last = _keys(described["key"])
        inner: dict[str, Any] = level
        for key in above:
            inner = inner.setdefault(key, {})
        inner[last] = attribute
    if "" in level:
        return
    yield from _members(models, model, level, value, path)


def _members(models: _Models, model: Any, level: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {type(value).__name__} instead of an object"
        return
    for key in value.keys() - level.keys():
        yield f"{_join(path, key)}: {model.__name__} has no such member"
    for key, attribute in level.items():
        place = _join(path, key)
        if isinstance(attribute, dict):
            yield from _members(models, model, attribute, value.get(key, {}), place)
            continue
        rules = model._validation.get(attribute, {})
        found = value.get(key)
        if rules.get("readonly") and key in value:
            yield f"{place}: it is read-only"
        elif found is None:
            if rules.get("required") and not rules.get("readonly"):
                yield f"{place}: it is required"
        else:
            yield from _value(models, model._attribute_map[attribute]["type"], found, place)
            yield from _rules(rules, found, place)
            yield from _choice(models, model, attribute, found, place)


def _value(models: _Models, kind: str, value: Any, path: str) -> Iterator[str]:
    if kind.startswith("["):
        if not isinstance(value, list):
            yield f"{path}: {type(value).__name__} instead of an array"
            return
        for index, item in enumerate(value):
            yield from _value(models, kind[1:-1], item, f"{path}[{index}]")
    elif kind.startswith("{"):
        if not isinstance(value, dict):
            yield f"{path}: {type(value).__name__} instead of an object"
            return
        for key, item in value.items():
            yield from _value(models, kind[1:-1], item, _join(path, key))
    elif kind in _SCALARS:
        if not isinstance(value, _SCALARS[kind]) or (isinstance(value, bool) and kind not in {"bool", "object"}):
            yield f"{path}: {type(value).__name__} instead of {kind}"
    else:
        yield from _object(models, kind, value, path)


def _rules(rules: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    for name, holds in _LIMITS.items():
        if name in rules:
            try:
                kept = holds(value, rules[name])
            except TypeError:
                continue  # of another type, which is said already
            if not kept:
                yield f"{path}: {name} is {rules[name]}"


def _choice(models: _Models, model: Any, attribute: str, value: Any, path: str) -> Iterator[str]:
    described = re.search(rf":vartype {attribute}:\s+(.+?)(?=\n\s*:|\Z)", model.__doc__ or "", re.DOTALL)
    for named in re.findall(r"~[\w.]+\.(\w+)", described[1] if described else ""):
        enum = models.get(named)
        choices = [member.value for member in enum] if hasattr(enum, "__members__") else []
        for item in value if isinstance(value, list) else [value]:
            if choices and item not in choices:
                yield f"{path}: {item!r} is none of {', '.join(choices)}"


def _subtype(models: _Models, model: Any, value: Mapping[str, Any]) -> Any:
    for attribute, classes in model._subtype_map.items():
        key = model._attribute_map[attribute]["key"]
        if (named := classes.get(value.get(key))) is not None:
            return models.get(named)
    return model


def _keys(key: str) -> list[str]:
    """The members that a flattened key goes through; a backslash keeps a dot in a name."""
    return [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", key)]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


if __name__ == "__main__":
    json.dump([sorted(problems(request)) for request in json.load(sys.stdin)], sys.stdout)
