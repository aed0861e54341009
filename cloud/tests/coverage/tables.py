"""Reads the tables of `COVERAGE.md` and `PLUGINS.md`."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

FILE = Path(__file__).resolve().parents[2] / "COVERAGE.md"
PLUGINS = FILE.with_name("PLUGINS.md")
OPERATIONS: Final = {
    "entra": "### Entra ID",
    "graph": "### Microsoft Graph",
    "keyvault": "### Key Vault data plane",
    "blob": "### Blob Storage data plane",
    "imds": "### Instance metadata (IMDS)",
    "aks-webhooks": "### AKS's webhooks",
}
"""The heading of each service's table of operations; ARM's table has resource types."""

Row = dict[str, str]


@cache
def table(heading: str, file: Path = FILE) -> tuple[Row, ...]:
    """The rows of the table below a heading, each cell by its column's name."""
    _, _, below = file.read_text(encoding="utf-8").partition(f"\n{heading}\n")
    assert below, f"{file} has no heading {heading!r}"
    lines = re.split(r"^#", below, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    rows = [_cells(line) for line in lines if line.startswith("|")]
    assert len(rows) > 2, f"{heading!r} has no table"
    columns, _, *body = rows
    return tuple(dict(zip(columns, cells, strict=True)) for cells in body)


def codes(cell: str) -> list[str]:
    """What stands in code font in a cell; `spec.{a,b}` is `spec.a` and `spec.b`."""
    return [expanded for code in re.findall(r"`([^`]+)`", cell) for expanded in _expanded(code)]


def code(cell: str) -> str:
    """The one thing in code font in a cell."""
    [found] = re.findall(r"`([^`]+)`", cell)
    return str(found)


def values(cell: str) -> dict[str, Any]:
    """`path` = `JSON` pairs of a cell; a value in angle brackets is any value, given as `...`."""
    pairs = re.findall(r"`([^`]+)` = `([^`]+)`", cell)
    return {path: ... if text.startswith("<") else json.loads(text) for path, text in pairs}


def matches(template: str, text: str) -> bool:
    """Whether a text is the template's: `<...>` stands for some words, `…` for anything."""
    parts = re.split(r"(<[^>]+>|…)", template)
    pattern = "".join({"<": ".+?", "…": ".*"}.get(part[:1], re.escape(part)) for part in parts)
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def lookup(state: Any, path: str) -> Any:
    """The value at a dotted path, None if there is none."""
    for name in path.split("."):
        state = state.get(name) if isinstance(state, dict) else None
    return state


def _cells(line: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _expanded(code: str) -> list[str]:
    braces = re.fullmatch(r"(.*)\{([^}]*)\}(.*)", code)
    if braces is None:
        return [code]
    return [f"{braces[1]}{part.strip()}{braces[3]}" for part in braces[2].split(",")]
