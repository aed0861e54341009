"""The drawing as SVG: one hosted cluster each, or an overview of many. Colours are in `page/graph.css`.

The `data-` attributes of an element name its node or edge, for the page. All text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from ops.graph import timeline
from ops.graph.layout import (
    CHIP_HEIGHT,
    CHIP_PAD,
    DETAIL_SIZE,
    MARK,
    NAME_SIZE,
    PAD,
    Box,
    Chip,
    Drawing,
    Frame,
    Line,
    cut,
    draw,
    fitted,
    room_for_name,
)
from ops.graph.model import (
    GraphNode,
    Health,
    IdentityGraph,
    NodeKind,
    escaped,
    first_expiry,
    mark,
    no_cluster,
    number,
    sentence,
)

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
        yield _overview_card(graph, cluster, x, y)


def _overview_card(graph: IdentityGraph, cluster: GraphNode, x: float, y: float) -> str:
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


# More hosted clusters are drawn as an overview.
WHOLE: Final = 3
_STYLE: Final = Path(__file__).parent / "page/graph.css"


def document(graph: IdentityGraph) -> str:
    """An SVG file, which follows the viewer's light or dark scheme."""
    if not graph.clusters:
        width, height = timeline.WIDTH, 60.0
        content = f'<text class="name" x="20" y="36">{escaped(no_cluster(graph.stack))}</text>\n'
    elif len(graph.clusters) > WHOLE:
        width, height, content = overview(graph)
        width = max(width, timeline.WIDTH)
        rows = timeline.of_fleet(graph)
        content += f'<g transform="translate(0 {number(height)})">\n{timeline.content(rows, graph.at)}</g>\n'
        height += timeline.height(rows)
    else:
        drawings = [
            (cluster.name, draw(graph.only(cluster.name)), timeline.of_cluster(graph, cluster.name))
            for cluster in graph.clusters
        ]
        width = max(timeline.WIDTH, *(drawing.width for _, drawing, _ in drawings))
        height = sum(drawing.height + timeline.height(rows) for _, drawing, rows in drawings)
        content = "".join(_stacked(drawings, graph.at))
    title = f"Identities of the stack {graph.stack}"
    style = _STYLE.read_text(encoding="utf-8")
    size = _size(width, height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" {size} role="img" '
        f'aria-label="{escaped(title)}">\n'
        f"<title>{escaped(title)}</title>\n<style>{style}</style>\n"
        f'<rect class="canvas" width="100%" height="100%"/>\n{content}</svg>\n'
    )


def inline(cluster: str, drawing: Drawing) -> str:
    """The drawing of one hosted cluster, as an element of the page."""
    label = f"Identities of the hosted cluster {cluster}"
    size = _size(drawing.width, drawing.height)
    return f'<svg class="graph" {size} role="group" aria-label="{escaped(label)}">\n{"".join(_parts(drawing))}</svg>\n'


def _stacked(drawings: Iterable[tuple[str, Drawing, Sequence[timeline.TimelineRow]]], now: datetime) -> Iterator[str]:
    y = 0.0
    for name, drawing, rows in drawings:
        content = "".join(_parts(drawing))
        yield f'<g transform="translate(0 {number(y)})" data-cluster="{escaped(name)}">\n{content}</g>\n'
        y += drawing.height
        yield f'<g transform="translate(0 {number(y)})">\n{timeline.content(rows, now)}</g>\n'
        y += timeline.height(rows)


def _parts(drawing: Drawing) -> Iterator[str]:
    for x, name in drawing.headings:
        yield f'<text class="heading" x="{number(x)}" y="30">{escaped(name)}</text>\n'
    if drawing.note is not None:
        yield f'<text class="heading" x="{number(drawing.note[0])}" y="45">{escaped(drawing.note[1])}</text>\n'
    yield from map(_frame, drawing.frames)
    yield f'<g class="edges">\n{"".join(map(_line, drawing.lines))}</g>\n'
    yield from map(_card, drawing.boxes)


def _frame(frame: Frame) -> str:
    x, y, width, height = map(number, (frame.x, frame.y, frame.width, frame.height))
    place = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="10"'
    return f'<rect class="frame" {place} data-owner="{escaped(frame.owner)}"/>\n'


def _line(line: Line) -> str:
    edge = line.edge
    return (
        f'<path class="edge {edge.relation}" d="{_path(line)}" data-source="{escaped(edge.source)}" '
        f'data-target="{escaped(edge.target)}"/>\n'
    )


def _path(line: Line) -> str:
    (x, y), (end_x, end_y) = line.begin, line.end
    if abs(y - end_y) < 0.5:
        return f"M{number(x)} {number(y)}H{number(end_x)}"
    middle, radius = end_x - line.gap / 2, 8.0 if end_y > y else -8.0
    if line.is_angular:
        return (
            f"M{number(x)} {number(y)}H{number(middle - 8)}q8 0 8 {number(radius)}"
            f"V{number(end_y - radius)}q0 {number(radius)} 8 {number(radius)}H{number(end_x)}"
        )
    return (
        f"M{number(x)} {number(y)}H{number(end_x - line.gap)}"
        f"C{number(middle)} {number(y)} {number(middle)} {number(end_y)} {number(end_x)} {number(end_y)}"
    )


def _card(box: Box) -> str:
    node = box.node
    health = f" {node.health}" if node.health else ""
    size = f'width="{number(box.width)}" height="{number(box.height)}"'
    return (
        f'<g class="node {node.kind}{health}" transform="translate({number(box.x)} {number(box.y)})" '
        f'data-id="{escaped(node.id)}" role="button">'
        f"<title>{escaped(sentence(node))}</title>"
        f'<rect class="card" {size} rx="7"/>{"".join(_texts(box))}'
        f"{mark(node.health, box.width - PAD - 4, box.height / 2) if node.health else ''}</g>\n"
        f"{''.join(_chip(box, chip) for chip in box.chips)}"
    )


def _chip(box: Box, chip: Chip) -> str:
    node, place = chip.node, f"translate({number(box.x + chip.x)} {number(box.y + chip.y)})"
    size = f'width="{number(chip.width)}" height="{number(CHIP_HEIGHT)}" rx="{number(CHIP_HEIGHT / 2)}"'
    return (
        f'<g class="node {node.kind}" transform="{place}" data-id="{escaped(node.id)}" role="button">'
        f"<title>{escaped(sentence(node))}</title>"
        f'<rect class="card" {size}/>'
        f'<text class="chip" x="{number(CHIP_PAD)}" y="11">{escaped(chip.text)}</text></g>\n'
    )


def _texts(box: Box) -> Iterator[str]:
    """The name in one or two lines, and the detail below the name."""
    texts = [("name", line) for line in box.lines]
    if box.node.detail:
        texts.append(("detail", cut(box.node.detail, DETAIL_SIZE, room_for_name(box.width, box.node))))
    baselines = [20.0, 36.0] if len(texts) > 1 or box.chips else [27.0]
    for (role, text), y in zip(texts, baselines, strict=False):
        yield f'<text class="{role}" x="{number(PAD)}" y="{number(y)}">{escaped(text)}</text>'


def _size(width: float, height: float) -> str:
    return f'viewBox="0 0 {number(width)} {number(height)}" width="{number(width)}" height="{number(height)}"'
