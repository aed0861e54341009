"""Dependencies between the rooms point one way."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.source import ROOT, files, imports, module_of, place

# What each room may import of the others. `tests` may import every room; the benchmark alone imports `tests`.
ROOMS: Final[Mapping[str, frozenset[str]]] = {
    "identity": frozenset(),
    "plugin": frozenset(),
    "components": frozenset({"identity"}),
    "provider": frozenset({"identity", "plugin"}),
    "ops": frozenset({"identity", "tools"}),
    "emulated": frozenset({"plugin", "localcloud"}),
    "localcloud": frozenset({"emulated", "plugin"}),  # `localcloud.testing` alone, see `cloud/tests/test_wall.py`
    "policies": frozenset({"identity"}),
    "tools": frozenset(),
    "tools/bench": frozenset({"identity", "tests"}),
    "tools/docs": frozenset({"identity"}),
    "examples": frozenset({"components"}),
    "__main__": frozenset({"components"}),
}
# The commands of each tool that `idstack` combines, and its packages. All of them may use what the runs use.
_RUN: Final = "up preview down renew rotate recover backup restore pulumi init local kubeconfig token rbac probe"
_TOOLS: Final = {
    "run": (_RUN, ""),
    "see": ("doctor graph status explain sweep", "doctor graph sweep"),
    "migrate": ("import_ export", "adoption"),
    "fleet": ("fleet", "fleet"),
    "rehearse": ("rehearse", "rehearsal"),
}
# Imports every module of a package and prints which others of this program, or of Pulumi, came along.
_IMPORT_ALL = """
import importlib, pkgutil, sys
own, rooms = sys.argv[1], tuple(sys.argv[2:])
for module in pkgutil.walk_packages(importlib.import_module(own).__path__, f"{own}."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
loaded = [name for name in sys.modules if name.partition(".")[0] in rooms]
assert len(loaded) > 10, loaded
print([name for name in loaded if "." in name and not name.startswith(own)])
"""


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    assert files(room), f"nothing is in {room}: is it still called that?"
    forbidden = {*ROOMS, "tests"} - ROOMS[room] - {room}
    assert not _imported(room, lambda module: _room(module) in forbidden)


@pytest.mark.parametrize("tool", _TOOLS)
def test_no_tool_of_idstack_needs_another_but_what_runs_a_stack(tool: str) -> None:
    modules = {module_of(file): file for file in files("ops")}
    own = {
        name: (*(f"ops.commands.{command}" for command in commands.split()), *(f"ops.{part}" for part in parts.split()))
        for name, (commands, parts) in _TOOLS.items()
    }
    assert {name for names in own.values() for name in names} <= modules.keys()
    others = tuple(name for other, names in own.items() if other not in (tool, "run") for name in names)
    needed: set[str] = set()
    waiting = list(own[tool])
    while waiting:
        name = waiting.pop()
        if name in modules and name not in needed:
            needed.add(name)
            waiting += [other for _, module in imports(modules[name]) for other in (module, module.rpartition(".")[0])]
    assert len(needed) > 10, needed
    assert not [name for name in needed if name.startswith(others)]


def test_every_folder_with_python_is_a_room() -> None:
    folders = {file.relative_to(ROOT).parts[0] for file in ROOT.glob("[!.]*/**/*.py")}
    assert folders - {"tests", "cloud"} <= set(ROOMS), "add to ROOMS what the new room may import"


def test_no_two_rooms_need_each_other() -> None:
    assert list(TopologicalSorter({**ROOMS, "localcloud": ()}).static_order())


def test_the_tests_use_what_the_local_cloud_offers_to_tests() -> None:
    clouds = {"localcloud", "emulated"}
    assert not _imported(
        "tests", lambda module: module.split(".")[0] in clouds and not module.startswith("localcloud.testing.")
    )


@pytest.mark.parametrize(
    ("room", "unknown"), [("identity", "pulumi"), ("ops", "pulumi"), ("identity/azure", "identity.aks")]
)
def test_a_room_knows_nothing_of_what_it_has_to_work_without(room: str, unknown: str) -> None:
    """Identities and commands without Pulumi, requests to Azure without a management cluster."""
    assert not _imported(room, lambda module: module.startswith(unknown))


def test_set_up_needs_the_standard_library_alone() -> None:
    own = {*sys.stdlib_module_names, "tools"}
    assert not _imported("tools", lambda module: module.split(".")[0] not in own)


def test_the_package_for_pods_works_without_this_program(tmp_path: Path) -> None:
    package = "identity/credentials"
    # Other processes write and rename byte code meanwhile.
    byte_code = shutil.ignore_patterns("__pycache__", "tests")
    shutil.copytree(ROOT / package, tmp_path / package, ignore=byte_code)
    # -P: the current directory is not searched, and nothing of this checkout is there.
    done = subprocess.run(
        [sys.executable, "-P", "-c", _IMPORT_ALL, package.replace("/", "."), *ROOMS, "tests", "pulumi"],
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_packages_that_mypy_skips_are_imported_by_submodule() -> None:
    """`import pulumi_kubernetes as k8s` would be Any, and nothing below it checked (pyproject.toml says why)."""
    skipped = {"pulumi_azure_native", "pulumi_kubernetes"}
    assert not [found for room in (*ROOMS, "tests") for found in _imported(room, skipped.__contains__)]


def _imported(room: str, is_meant: Callable[[str], bool]) -> list[str]:
    """The places where a room imports such modules."""
    return [
        f"{place(file, line)} imports {module}"
        for file in files(room)
        for line, module in imports(file)
        if is_meant(module)
    ]


def _room(module: str) -> str:
    """The innermost room of a module, or the first part of the name of one that is in none."""
    path = f"{module.replace('.', '/')}/"
    return max((room for room in ROOMS if path.startswith(f"{room}/")), key=len, default=path.partition("/")[0])
