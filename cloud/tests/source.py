"""Where this package's files are, and the source files of the packages in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGES: Final = Path(__file__).parents[1]
ROOT: Final = PACKAGES.parent
"""Of the checkout, which has the virtual environment, the locks and the Go modules of tests."""


def files(folder: str) -> list[Path]:
    """Every Python file below a folder of this package."""
    return sorted((PACKAGES / folder).rglob("*.py"))


def imports(file: Path) -> Iterator[str]:
    """Each module that a file imports; `from a import b` counts as `a.b`, for b may be a module."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)
