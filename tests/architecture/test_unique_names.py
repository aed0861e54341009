"""Names that can be looked up: a public class has a name of its own."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Set
from typing import Final

import pytest

from tests.architecture.source import CLOUD, files, nodes, place
from tests.architecture.test_rooms import ROOMS

# Imports nothing of the program, so it has names of its own.
_PACKAGE: Final = frozenset({"localcloud"})
# Worlds of tests, whose classes are named after what they stand for.
_TESTING: Final = CLOUD / "localcloud/testing"


@pytest.mark.parametrize("rooms", [ROOMS.keys() - _PACKAGE, _PACKAGE], ids=["product", "package"])
def test_no_two_public_classes_share_a_name(rooms: Set[str]) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for room in rooms:
        for file in files(room):
            for node in () if file.is_relative_to(_TESTING) else nodes(file):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(place(file, node.lineno))

    assert places
    assert not {name: found for name, found in places.items() if len(found) > 1}
