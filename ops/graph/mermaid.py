"""The graph as Mermaid text, for Markdown: pull requests, issues, wikis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ops.graph.model import GraphNode, Health, IdentityGraph, Kind, Relation, count
from ops.graph.svg import WHOLE
from ops.graph.words import HEALTHS, KINDS, first_expiry

# Brackets around a label, which are the shape of a node.
_SHAPES: Final = {
    Kind.HOSTED_CLUSTER: ('(["', '"])'),
    Kind.VAULT: ('[("', '")]'),
    Kind.ROLE: ('{{"', '"}}'),
    Kind.POD: ('[["', '"]]'),
    Kind.SERVICE_ACCOUNT: ('[["', '"]]'),
}
_ARROWS: Final = {
    Relation.USES: "-->",
    Relation.STORED_IN: "-->",
    Relation.FETCHED_BY: "-->",
    Relation.MOUNTED_IN: "-->",
    Relation.FETCHES_AS: "-. as .->",
    Relation.TRUSTS: "-- trusts -->",
    Relation.HOLDS: "-- holds -->",
    Relation.AT: "-- at -->",
}
# Each has enough contrast with its text on GitHub's light and on its dark page.
_CLASSES: Final = (
    "classDef ok fill:#dafbe1,stroke:#1a7f37,color:#0b3d1a",
    "classDef warning fill:#fff8c5,stroke:#9a6700,color:#4d2d00",
    "classDef error fill:#ffebe9,stroke:#cf222e,color:#82071e",
    "classDef unknown fill:#f6f8fa,stroke:#6e7781,color:#24292f,stroke-dasharray:4 3",
)
# All that Mermaid or HTML could read as more than text. Mermaid writes a character as `#<code>;`.
_SPECIAL: Final = re.compile(r"[^A-Za-z0-9 .,:/_()-]")


def document(graph: IdentityGraph) -> str:
    """A flowchart; of many hosted clusters each is one node."""
    lines = _overview(graph) if len(graph.clusters) > WHOLE else _whole(graph)
    return "\n".join(["flowchart LR", *(f"  {line}" for line in (*lines, *_CLASSES)), ""])


def _overview(graph: IdentityGraph) -> Iterator[str]:
    vaults = graph.of_kind(Kind.VAULT)
    ids = {node.id: f"n{number}" for number, node in enumerate((*graph.clusters, *vaults))}
    for cluster in graph.clusters:
        identities = graph.identities(cluster.name)
        found = (f"{count(each, identities)} {HEALTHS[each]}" for each in Health if count(each, identities))
        words = [cluster.name, f"identities: {', '.join(found)}", first_expiry(graph.expiry(cluster.name), graph.at)]
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
        if arrow := _ARROWS.get(edge.relation):
            yield f"{ids[edge.source]} {arrow} {ids[edge.target]}"


def _described(name: str, node: GraphNode) -> str:
    return _node(name, node, [KINDS[node.kind], node.name, node.detail])


def _node(name: str, node: GraphNode, words: list[str]) -> str:
    begin, end = _SHAPES.get(node.kind, ('["', '"]'))
    health = f":::{node.health}" if node.health else ""
    return f"{name}{begin}{'<br>'.join(_text(word) for word in dict.fromkeys(words) if word)}{end}{health}"


def _text(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", text)
