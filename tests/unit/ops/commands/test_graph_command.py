"""`idstack graph`: the forms, one cluster of several, and what cannot be read or written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ops.conftest import FakeEngine, Idstack, examined
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


def kinds(document: Any, cluster: str) -> set[str]:
    return {node["kind"] for node in document["nodes"] if node["cluster"] == cluster}


def test_scripts_get_nodes_and_edges(idstack: Idstack) -> None:
    printed = idstack("graph", "--stack", "dev", "--format", "json")

    document = json.loads(printed.output)
    assert printed.code == 0
    assert document["stack"] == "dev"
    assert kinds(document, "hc1") == kinds(document, "hc2")
    assert {"identity", "secret", "secretProviderClass", "pod", "role"} <= kinds(document, "hc1")
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


def test_a_page_is_not_printed_on_a_terminal(idstack: Idstack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    printed = idstack("graph", "--stack", "dev")

    assert (printed.code, printed.output) == (1, "")
    assert "--output graph.html" in printed.error


def test_what_cannot_be_drawn_or_written_is_refused_by_name(
    idstack: Idstack, engine: FakeEngine, tmp_path: Path
) -> None:
    file = tmp_path / "missing/graph.html"
    unwritten = idstack("graph", "--stack", "dev", "--output", str(file))
    unknown = idstack("graph", "--stack", "dev", "--format", "svg", "--cluster", "hc3")
    engine.has_no_stack()
    gone = idstack("graph", "--stack", "dev", "--format", "json")

    assert (unwritten.code, unknown.code, gone.code) == (1, 1, 1)
    assert f"idstack: the graph cannot be written: [Errno 2] No such file or directory: '{file}'" in unwritten.error
    assert 'the stack dev has no hosted cluster hc3; it has hc1, hc2; did you mean "hc' in unknown.error


def test_what_cannot_be_read_is_named_in_the_graph(
    idstack: Idstack, engine: FakeEngine, stack: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined(monkeypatch, {})
    world = GraphWorld()
    world.add_cluster("hc1")
    sources: Any = world.sources()
    engine.has_resources()
    engine.has({**sources.outputs, "clusterSide": "hypershift"})

    document = json.loads(idstack("graph", "--stack", "dev", "--format", "json").output)

    assert [reason.partition(":")[0] for reason in document["unread"]] == ["the management cluster"]
    pods = [node for node in document["nodes"] if node["kind"] == "pod"]
    assert {pod["health"] for pod in pods} == {"unknown"}


def test_status_leads_to_the_graph(idstack: Idstack) -> None:
    line = idstack("status", "--stack", "dev").output.splitlines()[-1]

    assert line == "the whole chain as a page: .venv/bin/idstack graph --stack dev --output graph.html"
