"""The layout of one hosted cluster: columns from left to right, by Graphviz's `dot`.

Graphviz ranks the nodes, orders the rows so that few lines cross, and routes lines around cards. Sizes are in pixels,
y grows downwards.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pygraphviz import AGraph

from ops.graph.model import TABLES, GraphEdge, GraphNode, IdentityGraph, NodeKind, Relation

ELLIPSIS: Final = "…"
_WIDTHS: Final[Sequence[int]] = TABLES["advanceWidths"]
_FIRST: Final = ord(" ")
# The width of every other character; those of East Asia are square.
_OTHER: Final = 1000


def width(text: str, size: float) -> float:
    """Width of a line in pixels, at most."""
    indexes = (ord(character) - _FIRST for character in text)
    return sum(_WIDTHS[index] if 0 <= index < len(_WIDTHS) else _OTHER for index in indexes) * size / 1000


def fitted(text: str, size: float, room: float, *, is_name: bool = True) -> str:
    """The text, shortened if it is too wide: a name in its middle, as names differ at their ends as often as at their
    beginnings, words at their end.
    """
    if width(text, size) <= room:
        return text
    for kept in range(len(text) - 1, 0, -1):
        tail = kept // 2 if is_name else 0
        begin = text[: kept - tail]
        shortened = (begin if is_name else begin.rstrip()) + ELLIPSIS + text[len(text) - tail :]
        if width(shortened, size) <= room:
            return shortened
    return ELLIPSIS


def wrapped(text: str, size: float, room: float, lines: int) -> list[str]:
    """The text in at most so many lines, broken at blanks; the last is shortened if necessary."""
    broken: list[str] = []
    words = text.split()
    while words and len(broken) < lines - 1:
        line = [words.pop(0)]
        while words and width(" ".join([*line, words[0]]), size) <= room:
            line.append(words.pop(0))
        broken.append(fitted(" ".join(line), size, room))
    return [*broken, fitted(" ".join(words), size, room)] if words else broken or [""]


def shared_words(names: Iterable[str]) -> str:
    """The prefix of two or more words that most names share; empty if no two names share one."""
    counted = Counter(
        " ".join(words[:length]) for words in map(str.split, set(names)) for length in range(2, len(words))
    )
    words, number = max(counted.items(), key=lambda item: (item[1], len(item[0])), default=("", 0))
    return words if number > 1 else ""


COLUMNS: Final[Mapping[str, Mapping[str, float]]] = TABLES["columns"]
"""The widest cards in pixels, by heading and kind."""
_COLUMN_OF: Final = {kind: index for index, kinds in enumerate(COLUMNS.values()) for kind in kinds}
# The kind that a frame surrounds, by its owner's.
_FRAMED: Final = {NodeKind.VAULT: NodeKind.SECRET, NodeKind.KEY_VAULT_USER: NodeKind.SECRET_PROVIDER_CLASS}
NAME_SIZE: Final = 12.5
DETAIL_SIZE: Final = 11.0
CHIP_SIZE: Final = 10.5
HEIGHT: Final = 46.0
PAD: Final = 12.0
MARK: Final = 24.0  # room for the mark of a health
_NARROWEST: Final = 116.0
_ROW_GAP, _COLUMN_GAP = 12.0, 32.0
# Before the column of identities, where lines branch.
_WIDER_GAPS: Final = {_COLUMN_OF[NodeKind.IDENTITY]: 8.0}
# The scopes of a role, as chips below its name.
CHIP_HEIGHT: Final = 15.0
CHIP_PAD: Final = 6.0
_CHIP_GAP, _CHIP_ROW = 5.0, 18.0
_NAME_LINE: Final = 16.0
_MARGIN, _FRAME_PAD = 20.0, 10.0
_HEADING: Final = 34.0
# Graphviz's inches have 72 points, which are pixels here.
_INCH: Final = 72.0


@dataclass(frozen=True)
class Box:
    """The card of a node, with the lines of its name, or (without) the frame around the cards that belong to it.

    `chips` are the scopes in the card of a role, each at a place in that card.
    """

    node: GraphNode
    x: float
    y: float
    width: float
    lines: tuple[str, ...]
    height: float = HEIGHT
    chips: tuple[Box, ...] = ()

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Line:
    """The line of an edge: horizontal from `begin` on, it changes its row in the gap before `end`."""

    edge: GraphEdge
    begin: tuple[float, float]
    end: tuple[float, float]
    gap: float


@dataclass(frozen=True)
class Drawing:
    """One hosted cluster; `headings` and `note` have the x of their columns. `note`: the words left out of names."""

    width: float
    height: float
    headings: tuple[tuple[float, str], ...]
    frames: tuple[Box, ...]
    lines: tuple[Line, ...]
    boxes: tuple[Box, ...]
    note: tuple[float, str] | None = None


def draw(graph: IdentityGraph) -> Drawing:
    """Lay out the graph of one hosted cluster (`IdentityGraph.only`)."""
    placed = [node for node in graph.nodes if node.cluster and node.kind in _COLUMN_OF]
    dropped = shared_words(node.name for node in placed if node.kind is NodeKind.ROLE)
    sizes = _sizes(graph, placed, dropped)
    # A role is connected to the pods that act with it, not across them to the identity.
    acting = {edge.target for edge in graph.edges if edge.relation is Relation.ACTS_WITH}
    edges = [
        edge
        for edge in graph.edges
        if {edge.source, edge.target} <= sizes.keys()
        and not (edge.relation is Relation.HOLDS and edge.target in acting)
    ]
    boxes = {box.node.id: box for box in _boxes(list(sizes.values()), edges)}
    owned = list(_owners(graph, tuple(boxes.values())))
    owners = [owner for owner, _ in owned]
    all_boxes = (*boxes.values(), *owners)
    columns = {_COLUMN_OF[box.node.kind]: box.x for box in boxes.values()}
    return Drawing(
        width=max(box.x + box.width for box in all_boxes) + _MARGIN,
        height=max(box.y + box.height for box in all_boxes) + _MARGIN,
        headings=tuple((columns[index], name) for index, name in enumerate(COLUMNS) if index in columns),
        note=(columns[_COLUMN_OF[NodeKind.ROLE]], f"… {dropped}") if dropped else None,
        frames=tuple(frame for _, frame in owned),
        lines=(*(_line(edge, boxes) for edge in edges), *_owner_lines(graph, owners)),
        boxes=all_boxes,
    )


def room_for_name(box_width: float, node: GraphNode) -> float:
    return box_width - 2 * PAD - (MARK if node.health else 0)


def _sizes(graph: IdentityGraph, nodes: Sequence[GraphNode], dropped: str) -> dict[str, Box]:
    """The card of each node by its id, without its place; a column is as wide as its widest text, within bounds."""
    by_id = {node.id: node for node in graph.nodes}
    scopes: dict[str, list[GraphNode]] = {}
    for edge in graph.edges:
        if edge.relation is Relation.AT and by_id[edge.target].kind is NodeKind.SCOPE:
            scopes.setdefault(edge.source, []).append(by_id[edge.target])
    # Without the words that most roles share.
    names = {
        node.id: f"… {node.name[len(dropped) + 1 :]}"
        if node.kind is NodeKind.ROLE and dropped and node.name.startswith(f"{dropped} ")
        else node.name
        for node in nodes
    }
    widths: dict[int, float] = {}
    for node in nodes:
        column = _COLUMN_OF[node.kind]
        widest = list(COLUMNS.values())[column][node.kind]
        room = room_for_name(widest, node)
        name = max(width(line, NAME_SIZE) for line in _broken(names[node.id], node, room))
        ends = [chip.x + chip.width - PAD for chip in _chips(scopes.get(node.id, ()), room, 1)]
        needed = max(name, width(node.detail, DETAIL_SIZE), *ends) + 2 * PAD + (MARK if node.health else 0)
        widths[column] = max(widths.get(column, _NARROWEST), min(needed + 1, widest))
    boxes = {}
    for node in nodes:
        own = widths[_COLUMN_OF[node.kind]]
        room = room_for_name(own, node)
        lines = tuple(_broken(names[node.id], node, room))
        chips = tuple(_chips(scopes.get(node.id, ()), room, len(lines)))
        height = max([HEIGHT, *(chip.y + _CHIP_ROW + 3 for chip in chips)])
        boxes[node.id] = Box(node, 0, 0, own, lines, height, chips)
    return boxes


def _chips(scopes: Iterable[GraphNode], room: float, lines: int) -> Iterator[Box]:
    """The scopes of a role in rows below the lines of its name."""
    x, y = 0.0, 26.0 + (lines - 1) * _NAME_LINE
    for scope in scopes:
        text = fitted(scope.name, CHIP_SIZE, room - 2 * CHIP_PAD)
        own = width(text, CHIP_SIZE) + 2 * CHIP_PAD
        if x and x + own > room:
            x, y = 0.0, y + _CHIP_ROW
        yield Box(scope, x + PAD, y, own, (text,), CHIP_HEIGHT)
        x += own + _CHIP_GAP


def _broken(name: str, node: GraphNode, room: float) -> list[str]:
    """The lines of a name: two at most if the card has no detail, otherwise one."""
    return wrapped(name, NAME_SIZE, room, 1 if node.detail else 2)


def _boxes(cards: Sequence[Box], edges: Sequence[GraphEdge]) -> Iterator[Box]:
    """The cards at their places by Graphviz; the hosted cluster is in the first row, beside its identities."""
    dot = AGraph(
        strict=False, directed=True, rankdir="LR", splines=False, nodesep=_ROW_GAP / _INCH, ranksep=_COLUMN_GAP / _INCH
    )
    dot.node_attr.update(shape="box", fixedsize=True, label="")
    nodes = {card.node.id: card.node for card in cards}
    # Generated names, so that no text of the stack is in it.
    ids = {id: f"n{number}" for number, id in enumerate(nodes)}
    chains = {node.identity: ids[id] for id, node in nodes.items() if node.kind is NodeKind.IDENTITY}
    for card in cards:
        # Graphviz puts a group into one row.
        group = {"group": chains[card.node.identity]} if card.node.identity else {}
        order = {"ordering": "out"} if card.node.kind is NodeKind.HOSTED_CLUSTER else {}
        dot.add_node(ids[card.node.id], width=card.width / _INCH, height=card.height / _INCH, **group, **order)
    for edge in edges:
        length = _COLUMN_OF[nodes[edge.target].kind] - _COLUMN_OF[nodes[edge.source].kind]
        weight = 1 if edge.relation is Relation.USES else 20
        dot.add_edge(ids[edge.source], ids[edge.target], minlen=length, weight=weight)
    layout = json.loads(dot.draw(format="json0", prog="dot"))
    middles = {item["name"]: tuple(map(float, item["pos"].split(","))) for item in layout["objects"]}
    bottom = float(layout["bb"].split(",")[3]) + _MARGIN + _HEADING + HEIGHT + 2 * _FRAME_PAD
    first = max((middles[id][1] for id in chains.values()), default=0.0)
    for card in cards:
        x, y = middles[ids[card.node.id]]
        column = _COLUMN_OF[card.node.kind]
        further = sum(more for begin, more in _WIDER_GAPS.items() if column >= begin)
        y = bottom - (first if card.node.kind is NodeKind.HOSTED_CLUSTER else y)
        yield replace(card, x=x + _MARGIN + further - card.width / 2, y=y - card.height / 2)


def _line(edge: GraphEdge, boxes: Mapping[str, Box]) -> Line:
    begin, end = boxes[edge.source], boxes[edge.target]
    gap = _COLUMN_GAP + _WIDER_GAPS.get(_COLUMN_OF[end.node.kind], 0.0)
    return Line(edge, (begin.x + begin.width, begin.middle), (end.x, end.middle), gap)


def _owners(graph: IdentityGraph, boxes: Sequence[Box]) -> Iterator[tuple[Box, Box]]:
    """Vault and key-vault-user, at the heads of their frames."""
    for node in graph.nodes:
        framed = [box for box in boxes if box.node.kind is _FRAMED.get(node.kind)]
        if framed:
            first, last = min(framed, key=lambda box: box.y), max(box.y for box in framed)
            lines = tuple(_broken(node.name, node, room_for_name(first.width, node)))
            owner = Box(node, first.x, first.y - HEIGHT - _ROW_GAP, first.width, lines)
            x, y = owner.x - _FRAME_PAD, owner.y - _FRAME_PAD
            yield owner, Box(node, x, y, owner.width + 2 * _FRAME_PAD, (), last + HEIGHT + _FRAME_PAD - y)


def _owner_lines(graph: IdentityGraph, owners: Sequence[Box]) -> Iterator[Line]:
    """The line from the key-vault-user to the vault, if it has a role on it."""
    by_kind = {box.node.kind: box for box in owners}
    for role in graph.of_kind(NodeKind.ROLE):
        vault, user = by_kind.get(NodeKind.VAULT), by_kind.get(NodeKind.KEY_VAULT_USER)
        if role.cluster is None and vault is not None and user is not None:
            begin, end = (vault.x + vault.width, vault.middle), (user.x, user.middle)
            yield Line(GraphEdge(user.node.id, Relation.HOLDS, vault.node.id), begin, end, _COLUMN_GAP)
