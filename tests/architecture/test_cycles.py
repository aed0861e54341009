"""Nothing inside a room needs what needs it: neither its modules nor the packages that it is divided into."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, files, imports, module_of
from tests.architecture.test_rooms import ROOMS


@pytest.mark.parametrize("room", [*ROOMS, "tests"])
def test_no_two_modules_of_a_room_need_each_other(room: str) -> None:
    """An import inside a function counts: it hides a cycle, it does not remove it."""
    assert _cycle(_modules(room)) is None


@pytest.mark.parametrize("room", ROOMS)
def test_no_two_packages_of_a_room_need_each_other(room: str) -> None:
    packages: dict[str, set[str]] = {}
    for module, needed in _modules(room).items():
        own = _package(module)
        packages.setdefault(own, set()).update({_package(other) for other in needed} - {own})

    assert _cycle(packages) is None


def test_an_import_of_a_module_or_of_something_in_it_is_a_need() -> None:
    needs = _modules("plugin")

    assert needs["plugin.servicer"] == {"plugin.provider", "plugin.values"}
    assert _package("plugin") == _package("plugin.servicer") == "plugin"


@pytest.mark.parametrize(
    ("needs", "cycle"),
    [({"a": {"b"}, "b": {"c"}, "c": set()}, None), ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, "a needs b needs c needs a")],
)
def test_a_cycle_is_reported_with_each_of_its_members(needs: Mapping[str, set[str]], cycle: str | None) -> None:
    assert _cycle(needs) == cycle


def _cycle(needs: Mapping[str, set[str]]) -> str | None:
    """One cycle of the graph, None if it has none."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        members: list[str] = error.args[1]
        # From what is needed to what needs it, beginning anywhere.
        ring = members[:0:-1]
        first = ring.index(min(ring))
        return " needs ".join([*ring[first:], *ring[:first], ring[first]])
    return None


def _modules(room: str) -> dict[str, set[str]]:
    """Each module of the room with those of the room that it imports."""
    named = {module_of(file): file for file in files(room)}
    return {
        name: {found for _, module in imports(file) if (found := _known(module, named))} for name, file in named.items()
    }


def _known(imported: str, modules: Mapping[str, Path]) -> str | None:
    """The module behind an import, which may name something in it; None if it is another room's."""
    return next((name for name in (imported, imported.rpartition(".")[0]) if name in modules), None)


def _package(module: str) -> str:
    """The folder that the module lies in; a package's own `__init__` lies in the package."""
    return module if (ROOT / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]
