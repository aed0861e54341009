"""The program's source files by room, and what is written in them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CLOUD: Final = ROOT / "cloud"
_CLOUDS: Final = ("emulated", "localcloud")
# Rooms of their own within `tools`.
_WITHIN_TOOLS: Final = ("tools/bench", "tools/docs")


def files(room: str) -> list[Path]:
    """Every Python file of a room: a folder of the project, `__main__`, or one of the packages below `cloud/`."""
    if room == "__main__":
        return [ROOT / "__main__.py"]
    found = (CLOUD / room if room in _CLOUDS else ROOT / room).rglob("*.py")
    others = [ROOT / inner for inner in _WITHIN_TOOLS if inner != room]
    return sorted(file for file in found if not any(map(file.is_relative_to, others)))


def module_of(file: Path) -> str:
    """The name by which a file is imported."""
    path = file.relative_to(CLOUD if file.is_relative_to(CLOUD) else ROOT).with_suffix("")
    return ".".join(path.parent.parts if path.name == "__init__" else path.parts)


@cache
def nodes(file: Path) -> Sequence[ast.AST]:
    """Every node of a file's syntax tree."""
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))))


def constants(rooms: Iterable[str]) -> Iterator[tuple[Path, ast.Constant]]:
    """Every constant of these rooms, with its file."""
    return (
        (file, node) for room in rooms for file in files(room) for node in nodes(file) if isinstance(node, ast.Constant)
    )


def place(file: Path, line: int) -> str:
    """How an offence is named."""
    return f"{file.relative_to(ROOT)}:{line}"


@cache
def imports(file: Path) -> Sequence[tuple[int, str]]:
    """Line and module of each import; `from a import b` counts as `a.b`, for b may be a module."""
    return list(_imports(file))


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place(file, node.lineno)}: imports are absolute here"
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)
