"""The graph as Mermaid text, for Markdown: pull requests, issues, wikis."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from ops.graph.model import HEALTHS, KINDS, TABLES, GraphNode, Health, IdentityGraph, NodeKind, first_expiry
from ops.graph.svg import WHOLE

# Characters that Mermaid or HTML may interpret. Mermaid's escape is `#<code>;`.
_SPECIAL: Final = re.compile(r"[^A-Za-z0-9 .,:/_()-]")


def document(graph: IdentityGraph) -> str:
    """A flowchart; each of many hosted clusters is one node."""
    lines = _overview(graph) if len(graph.clusters) > WHOLE else _whole(graph)
    return "\n".join(["flowchart LR", *(f"  {line}" for line in (*lines, *TABLES["classes"])), ""])


def _overview(graph: IdentityGraph) -> Iterator[str]:
    vaults = graph.of_kind(NodeKind.VAULT)
    ids = {node.id: f"n{number}" for number, node in enumerate((*graph.clusters, *vaults))}
    for cluster in graph.clusters:
        numbers = Counter(node.health for node in graph.identities(cluster.name))
        counts = (f"{numbers[health]} {HEALTHS[health]}" for health in Health if numbers[health])
        words = [cluster.name, f"identities: {', '.join(counts)}", first_expiry(graph.expiry(cluster.name), graph.at)]
        yield _node(ids[cluster.id], cluster, words)
    for vault in vaults:
        yield _node(ids[vault.id], vault, [vault.name])
        yield from (f"{ids[cluster.id]} --> {ids[vault.id]}" for cluster in graph.clusters)


def _whole(graph: IdentityGraph) -> Iterator[str]:
    ids = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    for cluster in graph.clusters:
        yield f'subgraph {ids[cluster.id]}s["{_text(cluster.name)}"]'
        yield from (f"  {_described(ids[node.id], node)}" for node in graph.nodes if node.cluster == cluster.name)
        yield "end"
    yield from (_described(ids[node.id], node) for node in graph.nodes if node.cluster is None)
    for edge in graph.edges:
        if arrow := TABLES["arrows"].get(edge.relation):
            yield f"{ids[edge.source]} {arrow} {ids[edge.target]}"


def _described(name: str, node: GraphNode) -> str:
    return _node(name, node, [KINDS[node.kind], node.name, node.detail])


def _node(name: str, node: GraphNode, words: list[str]) -> str:
    begin, end = TABLES["shapes"].get(node.kind, ('["', '"]'))
    health = f":::{node.health}" if node.health else ""
    return f"{name}{begin}{'<br>'.join(_text(word) for word in dict.fromkeys(words) if word)}{end}{health}"


def _text(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"#{ord(match[0])};", text)
