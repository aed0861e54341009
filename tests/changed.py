"""Which test files a change can reach: `python -m tests.changed [commit]` prints them (`make test ARGS=changed`).

By the imports, which `tests/architecture` keeps in order, and by what imports do not show: the processes that a stack
starts, a module that is named in a command line, a file that is read. The rules of the architecture read everything.
Without a commit it is what has changed since this branch left `main`, and what is not committed yet.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT, TESTS, files, imports, is_of_tests, module_of, nodes

_ROOMS: Final = (
    *("__main__", "bench", "components", "emulated", "identity", "localcloud", "ops", "plugin", "policies", "provider"),
    *("tests", "tools"),
)
# What the engine and the local cloud start for a stack of `tests/harness.py`.
_HARNESS: Final = ROOT / "tests/harness.py"
_FIXTURES: Final = ROOT / "conftest.py"
_EMULATED: Final = ("emulated.azure_native", "emulated.azuread", "emulated.kubernetes")
_STARTED: Final = ("__main__", "localcloud", "ops", "policies", "provider", *_EMULATED)
# Everything depends on them.
_EVERYTHING: Final = frozenset({"requirements.txt", "pyproject.toml"})


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


def reachable(changed: Iterable[Path]) -> list[Path]:
    """The files of tests that files of the project, changed or deleted, can reach; the folders if they all can."""
    changed = list(changed)
    if any(file.parent == ROOT and file.name in _EVERYTHING for file in changed):
        return [*TESTS]
    sources = _all_sources()
    begun = {source for file in changed for source in _sources(file, sources)}
    found = reached(begun, _needs())
    rules = set((ROOT / "tests/architecture").glob("test_*.py"))
    return sorted(file for file in found | rules if file.name.startswith("test_") and is_of_tests(file))


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
def _all_sources() -> list[Path]:
    return [file for room in _ROOMS for file in files(room)]


@cache
def _needs() -> dict[Path, set[Path]]:
    """The files that each file needs."""
    sources = _all_sources()
    named = {module_of(file): file for file in sources}
    needs = {file: set(_needed(file, named)) for file in sources}
    for file in sources:
        if is_of_tests(file):
            needs[file] |= {conftest for conftest in _conftests(file) if conftest in needs and conftest != file}
    # A test imports the types of the fixtures that it uses, so what the fixtures of all need counts for those alone.
    needs[_FIXTURES] = set()
    needs[_HARNESS] |= {started for module in _STARTED for started in _run(module, named)}
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


def main(since: str = "") -> None:
    """Print the files of tests, one a line."""
    [base] = _git("merge-base", "HEAD", since or "main")
    listed = [*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")]
    for file in reachable(ROOT / item for item in listed):
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main(*sys.argv[1:])
