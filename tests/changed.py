"""Which test files a change can reach: `python -m tests.changed [commit] [cloud]` prints them (`ARGS=changed`).

By the imports, which `tests/architecture` keeps in order, and by what imports do not show: the processes that a stack
starts, a module that is named in a command line, a file that is read. The rules of the architecture read everything.
The program and the local cloud are a side each: what changes on one side alone is proven by the tests of that side.
Without a commit it is what has changed since this branch left `main`, and what is not committed yet.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from tests.architecture.source import CLOUD, ROOT, files, imports, module_of, nodes

# Everything depends on them.
_EVERYTHING: Final = frozenset({ROOT / "requirements.txt", ROOT / "pyproject.toml", CLOUD / "pyproject.toml"})


@dataclass(frozen=True)
class Side:
    """The rooms of one side, its tests among them, and what its tests start without an import.

    `starts` has, for a file of tests, the modules that run as processes of their own.
    """

    folder: Path
    rooms: tuple[str, ...]
    starts: tuple[tuple[Path, tuple[str, ...]], ...]

    @property
    def tests(self) -> Path:
        """The folder of its tests."""
        return self.folder / "tests"


PROGRAM: Final = Side(
    ROOT,
    (
        "__main__",
        "components",
        "identity",
        "ops",
        "plugin",
        "policies",
        "provider",
        "tests",
        "tools",
        "tools/bench",
        "tools/docs",
    ),
    # What the engine starts for a stack of the harness.
    ((ROOT / "tests/harness.py", ("__main__", "ops", "policies", "provider")),),
)
LOCAL_CLOUD: Final = Side(CLOUD, ("emulated", "localcloud", "plugin", "cloud/tests"), ())


def reached(changed: Iterable[Path], needs: Mapping[Path, set[Path]]) -> set[Path]:
    """The files that are changed, or need what is; `needs` has the files that each file needs."""
    users: dict[Path, set[Path]] = {}
    for file, needed in needs.items():
        for dependency in needed:
            users.setdefault(dependency, set()).add(file)
    found, waiting = set(changed), list(changed)
    while waiting:
        new = users.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found


def reachable(changed: Iterable[Path], side: Side = PROGRAM) -> list[Path]:
    """The files of a side's tests that files of the project, changed or deleted, can reach; their folder if all can."""
    changed = list(changed)
    if not _EVERYTHING.isdisjoint(changed):
        return [side.tests]
    sources = _sources_of(side)
    begun = {source for file in changed for source in _sources(file, sources)}
    found = reached(begun, _needs(side))
    rules = set((side.tests / "architecture").glob("test_*.py"))
    return sorted(file for file in found | rules if file.name.startswith("test_") and file.is_relative_to(side.tests))


def _sources(changed: Path, sources: list[Path]) -> Iterator[Path]:
    """The Python files that a file is, or that read it: those that name it, and those beside it or above it."""
    if changed.suffix == ".py":
        # One that is gone changes what its folder has.
        yield from [changed] if changed.exists() else [source for source in sources if source.parent == changed.parent]
        return
    yield from (source for source in sources if any(changed.name in text for text in _texts(source)))
    for folder in changed.relative_to(ROOT).parents[:-1]:
        beside = [source for source in sources if source.parent == ROOT / folder]
        if beside:
            yield from beside
            return


@cache
def _sources_of(side: Side) -> list[Path]:
    return [file for room in side.rooms for file in files(room)]


@cache
def _needs(side: Side) -> dict[Path, set[Path]]:
    """The files that each file needs."""
    sources = _sources_of(side)
    named = {module_of(file): file for file in sources}
    needs = {file: set(_needed(file, named)) for file in sources}
    for file in sources:
        if file.is_relative_to(side.tests):
            needs[file] |= {conftest for conftest in _conftests(file) if conftest in needs and conftest != file}
    # A test imports the types of the fixtures that it uses, so what the fixtures of all need counts for those alone.
    needs[side.tests / "conftest.py"] = set()
    for file, modules in side.starts:
        needs[file] |= {started for module in modules for started in _run(module, named)}
    return needs


def _needed(file: Path, named: Mapping[str, Path]) -> Iterator[Path]:
    for _, module in imports(file):
        yield from _with_packages(module, named)
    for text in _texts(file):
        if text.endswith(".") and text[:-1] in named:  # of a module's name that is put together
            yield from (source for name, source in named.items() if name.startswith(text))
        elif "." in text and text in named:
            yield from _run(text, named)
    for node in nodes(file) if "-m" in _texts(file) else ():
        if isinstance(node, (ast.List, ast.Tuple, ast.Call)):
            words = node.args if isinstance(node, ast.Call) else node.elts
            for option, module in pairwise(_constant(word) for word in words):
                if option == "-m":
                    yield from _run(module, named)


def _with_packages(module: str, named: Mapping[str, Path]) -> Iterator[Path]:
    """A module and the packages that it is in, which an import runs, too; `module` may name something in it."""
    while module:
        if module in named:
            yield named[module]
        module = module.rpartition(".")[0]


def _run(module: str, named: Mapping[str, Path]) -> Iterator[Path]:
    """The files of `python -m module`."""
    yield from _with_packages(module, named)
    yield from _with_packages(f"{module}.__main__", named)


def _conftests(file: Path) -> Iterator[Path]:
    for folder in file.parents:
        yield folder / "conftest.py"
        if folder == ROOT:
            return


@cache
def _texts(file: Path) -> frozenset[str]:
    """Every string that is written in a file."""
    return frozenset(
        node.value for node in nodes(file) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _constant(node: ast.AST) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main(since: str = "main", side: str = "") -> None:
    """Print the files of tests, one a line, each relative to its side's folder."""
    [base] = _git("merge-base", "HEAD", since)
    listed = [*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")]
    chosen = LOCAL_CLOUD if side == "cloud" else PROGRAM
    for file in reachable((ROOT / item for item in listed), chosen):
        print(file.relative_to(chosen.folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
