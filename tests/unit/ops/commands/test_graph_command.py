"""`idstack graph`: the forms, one cluster of several, and what cannot be read or written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.graph_world import GraphWorld


@pytest.fixture(autouse=True)
def stack(engine: FakeEngine) -> FakeEngine:
    """A stack with two hosted clusters and no management cluster."""
    world = GraphWorld()
    for name in ("hc1", "hc2"):
        world.add_cluster(name)
    sources: Any = world.sources()
    engine.has(sources.outputs)
    engine.has_resources(*sources.resources)
    return engine


def test_scripts_get_nodes_and_edges(idstack: Idstack) -> None:
    printed = idstack("graph", "--stack", "dev", "--format", "json")

    document = json.loads(printed.output)
    assert (printed.code, document["stack"]) == (0, "dev")
    first, second = (
        {node["kind"] for node in document["nodes"] if node["cluster"] == cluster} for cluster in ("hc1", "hc2")
    )
    assert {"identity", "secret", "secretProviderClass", "pod", "role"} <= first == second
    assert {"source", "relation", "target"} == set(document["edges"][0])
    one = idstack("graph", "--stack", "dev", "--format", "mermaid", "--cluster", "hc2").output
    assert one.startswith("flowchart LR\n")
    assert ("hc2" in one, "hc1" in one) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "begin"), [((), "<!doctype html>"), (("-f", "svg"), "<svg "), (("-f", "mermaid"), "flowchart LR")]
)
def test_the_file_is_written_and_its_path_printed(
    idstack: Idstack, tmp_path: Path, arguments: tuple[str, ...], begin: str
) -> None:
    file = tmp_path / "graph"

    printed = idstack("graph", "--stack", "dev", *arguments, "--output", str(file))

    assert (printed.code, printed.output) == (0, f"{file}\n")
    assert file.read_text(encoding="utf-8").startswith(begin)


def test_what_cannot_be_drawn_or_written_is_refused_by_name(
    idstack: Idstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "missing/graph.html"
    unwritten = idstack("graph", "--stack", "dev", "--output", str(file))
    unknown = idstack("graph", "--stack", "dev", "--format", "svg", "--cluster", "hc3")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    on_a_terminal = idstack("graph", "--stack", "dev")

    assert (unwritten.code, unknown.code, on_a_terminal.code, on_a_terminal.output) == (1, 1, 1, "")
    assert "--output graph.html" in on_a_terminal.error
    assert f"idstack: the graph cannot be written: [Errno 2] No such file or directory: '{file}'" in unwritten.error
    assert 'the stack dev has no hosted cluster hc3; it has hc1, hc2; did you mean "hc' in unknown.error
