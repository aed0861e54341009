"""Where everything of one hosted cluster is drawn: columns from left to right, by Graphviz's `dot`.

Graphviz ranks the nodes, orders the rows so that few lines cross, and keeps the way of every line free of cards. Sizes
are in pixels, y grows downwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pygraphviz import AGraph

from ops.graph.model import GraphEdge, GraphNode, IdentityGraph, Kind, Relation
from ops.graph.text import width, wrapped

# Headings of the columns, and the kinds in each.
COLUMNS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "HostedCluster": (Kind.HOSTED_CLUSTER,),
    "Identity": (Kind.IDENTITY,),
    "Key Vault secret": (Kind.SECRET,),
    "SecretProviderClass": (Kind.SECRET_PROVIDER_CLASS,),
    "Pod or service account": (Kind.POD, Kind.SERVICE_ACCOUNT),
    "Role": (Kind.ROLE,),
    "Scope": (Kind.SCOPE,),
}
_COLUMN_OF: Final = {kind: index for index, kinds in enumerate(COLUMNS.values()) for kind in kinds}
# What a frame surrounds.
_FRAMED: Final = {Kind.VAULT: Kind.SECRET, Kind.KEY_VAULT_USER: Kind.SECRET_PROVIDER_CLASS}
NAME_SIZE: Final = 12.5
DETAIL_SIZE: Final = 11.0
HEIGHT: Final = 46.0
PAD: Final = 12.0
MARK: Final = 24.0  # room for the mark of a health
_NARROWEST: Final = 116.0
# The longest names are those of Deployments; names of roles are words, which two lines hold.
_WIDEST: Final = {Kind.POD: 264.0, Kind.SERVICE_ACCOUNT: 264.0, Kind.SECRET_PROVIDER_CLASS: 256.0, Kind.ROLE: 204.0}
_WIDEST_OF_OTHERS: Final = 236.0
_ROW_GAP, _COLUMN_GAP = 12.0, 36.0
# Before the columns of identities and scopes, where lines part and meet.
_WIDER_GAPS: Final = {_COLUMN_OF[Kind.IDENTITY]: 8.0, _COLUMN_OF[Kind.SCOPE]: 48.0}
_MARGIN, _FRAME_PAD = 20.0, 10.0
_HEADING: Final = 34.0
# Graphviz's inches have 72 points, which are pixels here.
_INCH: Final = 72.0


@dataclass(frozen=True)
class Box:
    """The card of a node; `lines` are what its name is broken into."""

    node: GraphNode
    x: float
    y: float
    width: float
    lines: tuple[str, ...]
    height: float = HEIGHT

    @property
    def middle(self) -> float:
        """The y of its middle."""
        return self.y + self.height / 2


@dataclass(frozen=True)
class Frame:
    """What surrounds the cards that belong to the node `owner`."""

    owner: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Line:
    """The line of an edge: level from `begin` on, it changes its row in the gap before `end`.

    `is_angular`: as the branches of a tree; otherwise as a curve.
    """

    edge: GraphEdge
    begin: tuple[float, float]
    end: tuple[float, float]
    gap: float
    is_angular: bool = False


@dataclass(frozen=True)
class Drawing:
    """One hosted cluster; `headings` are by the x of their columns."""

    width: float
    height: float
    headings: tuple[tuple[float, str], ...]
    frames: tuple[Frame, ...]
    lines: tuple[Line, ...]
    boxes: tuple[Box, ...]


def draw(graph: IdentityGraph) -> Drawing:
    """Lay out the graph of one hosted cluster (`IdentityGraph.only`)."""
    placed = [node for node in graph.nodes if node.kind is Kind.SCOPE or (node.cluster and node.kind in _COLUMN_OF)]
    widths = _widths(placed)
    shown = {node.id for node in placed}
    edges = [edge for edge in graph.edges if {edge.source, edge.target} <= shown and _is_drawn(edge, graph)]
    boxes = {box.node.id: box for box in _boxes(placed, edges, widths)}
    owners = tuple(_owners(graph, tuple(boxes.values())))
    every = (*boxes.values(), *owners)
    columns = {_COLUMN_OF[box.node.kind]: box.x for box in boxes.values()}
    return Drawing(
        width=max(box.x + box.width for box in every) + _MARGIN,
        height=max(box.y + box.height for box in every) + _MARGIN,
        headings=tuple((columns[index], name) for index, name in enumerate(COLUMNS) if index in columns),
        frames=tuple(_frames(owners, tuple(boxes.values()))),
        lines=(*(_line(edge, boxes) for edge in edges), *_owner_lines(graph, owners)),
        boxes=every,
    )


def room_for_name(box_width: float, node: GraphNode) -> float:
    """Room for text in a card."""
    return box_width - 2 * PAD - (MARK if node.health else 0)


def _widths(nodes: Iterable[GraphNode]) -> dict[int, float]:
    """The width of each column: that of its widest text, within bounds."""
    found: dict[int, float] = {}
    for node in nodes:
        column, widest = _COLUMN_OF[node.kind], _WIDEST.get(node.kind, _WIDEST_OF_OTHERS)
        name = max(width(line, NAME_SIZE) for line in _broken(node, room_for_name(widest, node)))
        wanted = max(name, width(node.detail, DETAIL_SIZE)) + 2 * PAD + (MARK if node.health else 0)
        found[column] = max(found.get(column, _NARROWEST), min(wanted + 1, widest))
    return found


def _broken(node: GraphNode, room: float) -> list[str]:
    """A name alone in its card may take two lines."""
    return wrapped(node.name, NAME_SIZE, room, 1 if node.detail else 2)


def _is_drawn(edge: GraphEdge, graph: IdentityGraph) -> bool:
    """Whether it has a line: a role is drawn behind the pods that act with it, not across them from the identity."""
    if edge.relation is not Relation.HOLDS:
        return True
    return not any(each.target == edge.target for each in graph.edges if each.relation is Relation.ACTS_WITH)


def _boxes(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], widths: Mapping[int, float]) -> Iterator[Box]:
    """The card of each node where Graphviz puts it; the hosted cluster is in the first row, beside its identities."""
    ids = {node.id: f"n{number}" for number, node in enumerate(nodes)}
    found = json.loads(AGraph(string=_dot(nodes, edges, ids, widths)).draw(format="json0", prog="dot"))
    middles = {each["name"]: tuple(map(float, each["pos"].split(","))) for each in found["objects"]}
    bottom = float(found["bb"].split(",")[3]) + _MARGIN + _HEADING + HEIGHT + 2 * _FRAME_PAD
    first = max((middles[ids[node.id]][1] for node in nodes if node.kind is Kind.IDENTITY), default=0.0)
    for node in nodes:
        x, y = middles[ids[node.id]]
        column = _COLUMN_OF[node.kind]
        own, further = widths[column], sum(more for begin, more in _WIDER_GAPS.items() if column >= begin)
        y = bottom - (first if node.kind is Kind.HOSTED_CLUSTER else y)
        lines = tuple(_broken(node, room_for_name(own, node)))
        yield Box(node, x + _MARGIN + further - own / 2, y - HEIGHT / 2, own, lines)


def _line(edge: GraphEdge, boxes: Mapping[str, Box]) -> Line:
    begin, end = boxes[edge.source], boxes[edge.target]
    gap = _COLUMN_GAP + _WIDER_GAPS.get(_COLUMN_OF[end.node.kind], 0.0)
    return Line(
        edge, (begin.x + begin.width, begin.middle), (end.x, end.middle), gap, is_angular=edge.relation is Relation.USES
    )


def _dot(
    nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], ids: Mapping[str, str], widths: Mapping[int, float]
) -> str:
    """The graph in Graphviz's language; names of nodes are ours, and no text of others is in it."""
    columns = {node.id: _COLUMN_OF[node.kind] for node in nodes}
    chains = {node.identity: ids[node.id] for node in nodes if node.kind is Kind.IDENTITY}
    lines = [
        f"graph [rankdir=LR splines=false nodesep={_ROW_GAP / _INCH} ranksep={_COLUMN_GAP / _INCH}]",
        f'node [shape=box fixedsize=true label="" height={HEIGHT / _INCH}]',
    ]
    for node in nodes:
        # What is in a group comes into one row.
        group = f" group={chains[node.identity]}" if node.identity else ""
        order = " ordering=out" if node.kind is Kind.HOSTED_CLUSTER else ""
        lines.append(f"{ids[node.id]} [width={widths[columns[node.id]] / _INCH}{group}{order}]")
    for edge in edges:
        length = columns[edge.target] - columns[edge.source]
        weight = 1 if edge.relation in (Relation.AT, Relation.USES) else 20
        lines.append(f"{ids[edge.source]} -> {ids[edge.target]} [minlen={length} weight={weight}]")
    return "digraph {\n" + ";\n".join(lines) + "}\n"


def _owners(graph: IdentityGraph, boxes: Sequence[Box]) -> Iterator[Box]:
    """Vault and key-vault-user, at the heads of their frames."""
    for node in graph.nodes:
        framed = [box for box in boxes if box.node.kind is _FRAMED.get(node.kind)]
        if framed:
            first = min(framed, key=lambda box: box.y)
            lines = tuple(_broken(node, room_for_name(first.width, node)))
            yield Box(node, first.x, first.y - HEIGHT - _ROW_GAP, first.width, lines)


def _frames(owners: Sequence[Box], boxes: Sequence[Box]) -> Iterator[Frame]:
    for owner in owners:
        last = max(box.y for box in boxes if box.node.kind is _FRAMED[owner.node.kind])
        x, y = owner.x - _FRAME_PAD, owner.y - _FRAME_PAD
        yield Frame(owner.node.id, x, y, owner.width + 2 * _FRAME_PAD, last + HEIGHT + _FRAME_PAD - y)


def _owner_lines(graph: IdentityGraph, owners: Sequence[Box]) -> Iterator[Line]:
    """From the key-vault-user to the vault, if it has a role on it."""
    by_kind = {box.node.kind: box for box in owners}
    for role in graph.of_kind(Kind.ROLE):
        vault, user = by_kind.get(Kind.VAULT), by_kind.get(Kind.KEY_VAULT_USER)
        if role.cluster is None and vault is not None and user is not None:
            begin, end = (vault.x + vault.width, vault.middle), (user.x, user.middle)
            yield Line(GraphEdge(user.node.id, Relation.HOLDS, vault.node.id), begin, end, _COLUMN_GAP)
