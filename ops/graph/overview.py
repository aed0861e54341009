"""An overview of many hosted clusters, as SVG: a card for each, with a square for each of its identities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.graph.layout import DETAIL_SIZE, MARK, NAME_SIZE, PAD
from ops.graph.model import GraphNode, Health, IdentityGraph, NodeKind
from ops.graph.shapes import escaped, mark, number
from ops.graph.text import cut, fitted
from ops.graph.words import first_expiry, sentence

_COLUMNS: Final = 4
_WIDTH, _HEIGHT, _GAP, _MARGIN = 290.0, 92.0, 14.0, 20.0
_HEADER: Final = 56.0
_SQUARE: Final = 11.0


def overview(graph: IdentityGraph) -> tuple[float, float, str]:
    """Width, height and content of the drawing."""
    rows = -(-len(graph.clusters) // _COLUMNS)
    width = 2 * _MARGIN + _COLUMNS * (_WIDTH + _GAP) - _GAP
    height = 2 * _MARGIN + _HEADER + rows * (_HEIGHT + _GAP) - _GAP
    return width, height, "".join(_content(graph, width))


def _content(graph: IdentityGraph, width: float) -> Iterator[str]:
    vaults = ", ".join(node.name for node in graph.of_kind(NodeKind.VAULT))
    title = fitted(f"{len(graph.clusters)} hosted clusters of the stack {graph.stack}", 16, width - 2 * _MARGIN)
    note = fitted(f"secrets in {vaults}, fetched as the key-vault-user", DETAIL_SIZE, width - 2 * _MARGIN)
    yield f'<text class="title" x="{number(_MARGIN)}" y="36">{escaped(title)}</text>\n'
    yield f'<text class="detail" x="{number(_MARGIN)}" y="56">{escaped(note)}</text>\n'
    for index, cluster in enumerate(graph.clusters):
        x = _MARGIN + index % _COLUMNS * (_WIDTH + _GAP)
        y = _MARGIN + _HEADER + index // _COLUMNS * (_HEIGHT + _GAP)
        yield _card(graph, cluster, x, y)


def _card(graph: IdentityGraph, cluster: GraphNode, x: float, y: float) -> str:
    room = _WIDTH - 2 * PAD
    identities = graph.identities(cluster.name)
    step = min(_SQUARE + 4, room / max(len(identities), 1))
    squares = "".join(
        f'<rect class="square {identity.health or "unreported"}" x="{number(PAD + index * step)}" y="50" '
        f'width="{number(min(_SQUARE, step))}" height="{number(_SQUARE)}" rx="2.5">'
        f"<title>{escaped(sentence(identity))}</title></rect>"
        for index, identity in enumerate(identities)
    )
    name = escaped(fitted(cluster.name, NAME_SIZE, room - MARK))
    detail = escaped(cut(cluster.detail, DETAIL_SIZE, room - MARK))
    expiry = escaped(cut(first_expiry(graph.expiry(cluster.name), graph.at), DETAIL_SIZE, room))
    return (
        f'<g class="node {cluster.kind} {cluster.health}" transform="translate({number(x)} {number(y)})" '
        f'data-id="{escaped(cluster.id)}" role="img">'
        f"<title>{escaped(sentence(cluster))}</title>"
        f'<rect class="card" width="{number(_WIDTH)}" height="{number(_HEIGHT)}" rx="7"/>'
        f'<text class="name" x="{number(PAD)}" y="24">{name}</text>'
        f'<text class="detail" x="{number(PAD)}" y="40">{detail}</text>'
        f"{squares}"
        f'<text class="detail" x="{number(PAD)}" y="79">{expiry}</text>'
        f"{mark(cluster.health or Health.UNKNOWN, _WIDTH - PAD - 6, 26)}</g>\n"
    )
