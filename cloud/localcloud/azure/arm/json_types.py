"""The JSON types of members of ARM's bodies: a member has one type wherever it is, but for those in TXT records.

Azure's own parsers take some numbers and booleans as text as well; here none is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from localcloud.azure.arm import errors
from localcloud.core import yaml_text

_WORDS: Final = {str: "a string", bool: "true or false", int: "an integer", list: "a JSON array", dict: "a JSON object"}
_TYPES: Final[Mapping[str, tuple[type, type | None]]] = {
    "text": (str, None),
    "number": (int, None),
    "flag": (bool, None),
    "object": (dict, None),
    "object of texts": (dict, str),
    "object of objects": (dict, dict),
    "list of texts": (list, str),
    "list of objects": (list, dict),
}
_FILE: Final[Mapping[str, str]] = yaml_text.load(Path(__file__).with_suffix(".yaml").read_bytes())
KNOWN: Final = {member: _TYPES[kind] for kind, members in _FILE.items() for member in members.split()}
"""Of each member its type, and the type of what is in it, if that is all of one type."""


def check(body: Mapping[str, Any], type_name: str) -> None:
    """Refuse a value of another type, and two parts of one name; raises 400. `type_name` is the resource type's."""
    for path, problem in _problems(body, ()):
        raise errors.invalid_format(type_name, path, problem)


def _problems(members: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, value in members.items():
        expected, of = (list, str) if path[-2:-1] == ("TXTRecords",) else KNOWN.get(name, (type(value), None))
        if value is not None:
            yield from _problems_of(value, (*path, name), expected, of)


def _problems_of(
    value: Any, path: tuple[str, ...], expected: type, of: type | None
) -> Iterator[tuple[tuple[str, ...], str]]:
    if type(value) is not expected:
        yield path, f"{_WORDS[expected]} is expected"
    elif isinstance(value, list) or (isinstance(value, dict) and of):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _problems_of(item, (*path, str(key)), of or type(item), None)
        names = Counter(str(item.get("name")).lower() for item in value if isinstance(item, dict) and "name" in item)
        yield from ((path, f"two of them have the name '{name}'") for name, count in names.items() if count > 1)
    elif isinstance(value, dict):
        yield from _problems(value, path)
