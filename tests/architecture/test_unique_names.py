"""Names that can be looked up: each names one thing alone."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.source import files, nodes, place
from tests.architecture.test_rooms import ROOMS


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for room in ROOMS:
        for file in files(room):
            for node in nodes(file):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(place(file, node.lineno))

    assert not {name: found for name, found in places.items() if len(found) > 1}
