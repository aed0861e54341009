"""`idstack graph` of a real stack: its state names every role, and its pods and probes report that all is well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from tests.harness import LocalStack


def test_a_stack_that_is_up_is_drawn_whole_and_is_well(stack: LocalStack, tmp_path: Path) -> None:
    page = tmp_path / "graph.html"
    document = json.loads(stack.idstack("graph", "--format", "json").stdout)
    stack.idstack("graph", "--output", str(page))

    nodes = {node["id"]: node for node in document["nodes"]}
    catalogued = {row.field: row.hypershift for row in CONTROL_PLANE}
    catalogued |= {row.field: row.hypershift for row in DATA_PLANE}
    identities = [node for node in nodes.values() if node["kind"] == "identity"]
    assert {node["name"] for node in identities} == {*stack.control_plane, *(row.field for row in DATA_PLANE)}
    for identity in identities:
        roles = _behind(document, identity["id"], "holds")
        assert [nodes[role]["name"] for role in roles] == [catalogued[identity["name"]].role.name]
        assert _behind(document, roles[0], "at")
    checked = [node for node in nodes.values() if node["health"] is not None]
    assert {node["kind"] for node in checked} == {"hostedCluster", "identity", "secret", "pod", "role"}
    assert {node["name"]: node["reason"] for node in checked if node["health"] != "ok"} == {}
    assert document["unread"] == []
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def _behind(document: Any, source: str, relation: str) -> list[str]:
    return [edge["target"] for edge in document["edges"] if (edge["source"], edge["relation"]) == (source, relation)]
