"""docs/reference/json.md as a schema, with which tests compare every document that a command prints."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parents[1] / "docs/reference/json.md"
_ROW: Final = re.compile(r"^\| `(.+)` \| (text|date|number|boolean|object)( or null)?(, optional)?(?:: (.*))? \|$")
# A meaning that is a list of values has all of them.
_VALUES: Final = re.compile(r"(`[^`]+`, )*`[^`]+`")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# Their documents are the engine's, or one a line.
_ELSEWHERE: Final = frozenset({"preview", "pulumi", "local"})


@dataclass
class Node:
    """A value: `kind` is None for a list and for an object without a row of its own; `children` are by key."""

    kind: str | None = None
    is_null: bool = False
    is_optional: bool = False
    values: Collection[str] = ()
    children: dict[str, Node] = field(default_factory=dict)

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """What differs from the page."""
        if value is None and self.is_null:
            return
        if "[]" in self.children and isinstance(value, list):
            for entry in value:
                yield from self.children["[]"].problems(entry, f"{place}[]")
        elif isinstance(value, dict) and self.kind in (None, "object"):
            yield from self._of_object(value, place)
        elif "[]" in self.children or not _is(self.kind, value):
            yield f"{place} is {value!r}, not {self.kind or 'a list or an object'}"
        elif self.values and value not in self.values:
            yield f"{place} is {value!r}, not {' or '.join(self.values)}"

    def _of_object(self, value: Mapping[str, Any], place: str) -> Iterator[str]:
        any_name = next((node for key, node in self.children.items() if key.startswith("<")), None)
        for key, entry in value.items():
            node = self.children.get(key, any_name)
            if node is not None:
                yield from node.problems(entry, f"{place}.{key}")
            elif self.children:
                yield f"{place}.{key} is not on the page"
        for key, node in self.children.items():
            if key not in value and not key.startswith("<") and not node.is_optional:
                yield f"{place}.{key} is missing"


def _is(kind: str | None, value: Any) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "date":
            return isinstance(value, str) and _DATE.fullmatch(value) is not None
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
    return False


@cache
def sections() -> Mapping[str, Sequence[Node]]:
    """The documents by command: `fleet status`. A command may print one of several."""
    found: dict[str, list[Node]] = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, *lines = section.splitlines()
        root = Node()
        for line in lines:
            if line.startswith("| `"):
                row = _ROW.match(line)
                assert row is not None, line
                _add(root, *row.groups(default=""))
        for command in heading.split(", "):
            found.setdefault(command, []).append(root)
    return found


def _add(root: Node, path: str, kind: str, null: str, optional: str, meaning: str) -> None:
    node = root
    for key in re.findall(r"\[\]|[^.\[\]]+", path):
        parent, node = node, node.children.setdefault(key, Node())
    if path.endswith("[]"):
        # Of the list, which may be empty.
        parent.is_optional = bool(optional)
        optional = ""
    node.kind, node.is_null, node.is_optional = kind, bool(null), bool(optional)
    node.values = re.findall(r"`([^`]+)`", meaning) if _VALUES.fullmatch(meaning) else ()


def require_documented(arguments: Sequence[str], printed: str) -> None:
    """Assert that the document that a command printed is one of its own on the page; an error prints none."""
    command = " ".join(
        next((arguments[:length] for length in (2, 1) if " ".join(arguments[:length]) in sections()), ())
    )
    if not {"--json", "json"} & set(arguments) or not printed or arguments[0] in _ELSEWHERE:
        return
    assert command, f"{arguments} is not on {PAGE.name}"
    document = json.loads(printed)
    differing = [list(root.problems(document, "")) for root in sections()[command]]
    assert [] in differing, min(differing, key=len)
