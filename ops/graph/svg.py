"""The drawing as SVG: one hosted cluster each, or an overview of many, and the dates of certificates on one axis of
time. Colours are in `page/graph.css`.

The `data-` attributes of an element name its node or edge, for the page. All text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

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


@dataclass(frozen=True)
class Picture:
    """A drawing with its size in pixels; its height is 0 if there is nothing to draw. `cluster` is shown alone."""

    width: float
    height: float
    content: str
    cluster: str = ""

    def element(self, label: str, attributes: str = 'class="graph"', role: str = "img") -> str:
        """The drawing as an element of the page; empty without a height."""
        if not self.height:
            return ""
        width, height = number(self.width), number(self.height)
        return (
            f'<svg {attributes} viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="{role}" '
            f'aria-label="{escaped(label)}">\n{self.content}</svg>\n'
        )


def overview(graph: IdentityGraph) -> Picture:
    rows = -(-len(graph.clusters) // _COLUMNS)
    width = 2 * _MARGIN + _COLUMNS * (_WIDTH + _GAP) - _GAP
    height = 2 * _MARGIN + _HEADER + rows * (_HEIGHT + _GAP) - _GAP
    return Picture(width, height, "".join(_overview(graph, width)))


def _overview(graph: IdentityGraph, width: float) -> Iterator[str]:
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
    detail = escaped(fitted(cluster.detail, DETAIL_SIZE, room - MARK, is_name=False))
    expiry = escaped(fitted(first_expiry(graph.expiry(cluster.name), graph.at), DETAIL_SIZE, room, is_name=False))
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
        content = f'<text class="name" x="20" y="36">{escaped(no_cluster(graph.stack))}</text>\n'
        pictures = [Picture(WIDTH, 60.0, content)]
    elif len(graph.clusters) > WHOLE:
        pictures = [overview(graph), timeline(of_fleet(graph), graph.at)]
    else:
        pictures = [picture for cluster in graph.clusters for picture in of_cluster(graph, cluster.name)]
    content, y = "", 0.0
    for picture in pictures:
        cluster = f' data-cluster="{escaped(picture.cluster)}"' if picture.cluster else ""
        content += f'<g transform="translate(0 {number(y)})"{cluster}>\n{picture.content}</g>\n'
        y += picture.height
    title = f"Identities of the stack {graph.stack}"
    whole = (
        f"<title>{escaped(title)}</title>\n<style>{_STYLE.read_text(encoding='utf-8')}</style>\n"
        f'<rect class="canvas" width="100%" height="100%"/>\n{content}'
    )
    width = max(WIDTH, *(picture.width for picture in pictures))
    return Picture(width, y, whole).element(title, 'xmlns="http://www.w3.org/2000/svg" class="graph"')


def of_cluster(graph: IdentityGraph, cluster: str) -> tuple[Picture, Picture]:
    """The chains of a hosted cluster, and the dates of its certificates."""
    drawing = draw(graph.only(cluster))
    chains = Picture(drawing.width, drawing.height, "".join(_chains(drawing)), cluster)
    return chains, timeline(certificates(graph, cluster), graph.at)


def _chains(drawing: Drawing) -> Iterator[str]:
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
        room = room_for_name(box.width, box.node)
        texts.append(("detail", fitted(box.node.detail, DETAIL_SIZE, room, is_name=False)))
    baselines = [20.0, 36.0] if len(texts) > 1 or box.chips else [27.0]
    for (role, text), y in zip(texts, baselines, strict=False):
        yield f'<text class="{role}" x="{number(PAD)}" y="{number(y)}">{escaped(text)}</text>'


WIDTH: Final = 1390.0
# The end of the names, and the begin and end of the axis; dates are written behind it.
_NAMES, _BEGIN, _END = 230.0, 246.0, 1290.0
_HEADING, _ROW = 56.0, 20.0
_MOST_TICKS: Final = 12


@dataclass(frozen=True)
class TimelineRow:
    """A certificate of that identity, or the first one of a hosted cluster."""

    name: str
    renew_after: datetime | None
    expires: datetime

    def health(self, now: datetime) -> Health:
        """The health by its dates alone."""
        if self.expires <= now:
            return Health.ERROR
        return Health.WARNING if self.renew_after is not None and self.renew_after <= now else Health.OK


def certificates(graph: IdentityGraph, cluster: str) -> list[TimelineRow]:
    """The certificates of a hosted cluster, in the catalogue's order."""
    return [
        TimelineRow(node.identity or node.name, node.renew_after, node.expires)
        for node in graph.of_kind(NodeKind.SECRET)
        if node.cluster == cluster and node.expires is not None
    ]


def of_fleet(graph: IdentityGraph) -> list[TimelineRow]:
    """The first renewal and the first expiry of each hosted cluster."""
    first = []
    for cluster in graph.clusters:
        rows = certificates(graph, cluster.name)
        if rows:
            renewals = [row.renew_after for row in rows if row.renew_after is not None]
            first.append(TimelineRow(cluster.name, min(renewals, default=None), min(row.expires for row in rows)))
    return first


def timeline(rows: Sequence[TimelineRow], now: datetime) -> Picture:
    height = _HEADING + len(rows) * _ROW + _MARGIN
    return Picture(WIDTH, height, "".join(_timeline(rows, now))) if rows else Picture(WIDTH, 0.0, "")


def _timeline(rows: Sequence[TimelineRow], now: datetime) -> Iterator[str]:
    dates = [now, *(row.expires for row in rows), *(row.renew_after for row in rows if row.renew_after)]
    begin, end = min(dates), max(dates)
    end = max(end, begin + timedelta(days=1))

    def place(date: datetime) -> float:
        return _BEGIN + (date - begin) / (end - begin) * (_END - _BEGIN)

    bottom = _HEADING + len(rows) * _ROW - 4
    yield f'<text class="heading" x="{number(_MARGIN)}" y="26">Renewals and expiries</text>\n'
    yield _renewal(_NAMES + 16, 22) + f'<text class="detail" x="{number(_NAMES + 26)}" y="26">renewal due</text>\n'
    yield _expiry(_NAMES + 116, 22) + f'<text class="detail" x="{number(_NAMES + 126)}" y="26">expiry</text>\n'
    for month in _months(begin, end):
        x = number(place(month))
        yield f'<path class="month" d="M{x} {number(_HEADING - 8)}V{number(bottom)}"/>'
        yield f'<text class="detail" x="{x}" y="{number(_HEADING - 12)}">{month:%Y-%m}</text>\n'
    yield f'<path class="now" d="M{number(place(now))} 32V{number(bottom)}"><title>{now:%Y-%m-%d}</title></path>\n'
    for index, row in enumerate(rows):
        y = _HEADING + index * _ROW + _ROW / 2
        due = max(min(row.renew_after or row.expires, row.expires), begin)
        name = escaped(fitted(row.name, DETAIL_SIZE, _NAMES - _MARGIN))
        renewal = f"renewal due {row.renew_after:%Y-%m-%d}, " if row.renew_after else ""
        yield (
            f'<g class="certificate {row.health(now)}"><title>{escaped(row.name)}: {renewal}'
            f"expiry {row.expires:%Y-%m-%d}</title>"
            f'<text class="detail" x="{number(_MARGIN)}" y="{number(y + 4)}">{name}</text>'
            f"{_bar('current', place(min(now, due)), place(due), y)}{_bar('due', place(due), place(row.expires), y)}"
            f"{_renewal(place(due), y) if row.renew_after else ''}{_expiry(place(row.expires), y)}"
            f'<text class="detail" x="{number(_END + 14)}" y="{number(y + 4)}">{row.expires:%Y-%m-%d}</text></g>\n'
        )


def _months(begin: datetime, end: datetime) -> Iterator[datetime]:
    """First days of months in between, so few that their names do not overlap."""
    first = begin.year * 12 + begin.month
    step = -(-(end.year * 12 + end.month - first) // _MOST_TICKS) or 1
    for month in range(first, end.year * 12 + end.month, step):
        yield datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)


def _bar(kind: str, begin: float, end: float, y: float) -> str:
    return f'<rect class="{kind}" x="{number(begin)}" y="{number(y - 2)}" width="{number(end - begin)}" height="4"/>'


def _renewal(x: float, y: float) -> str:
    return f'<circle class="renewal" cx="{number(x)}" cy="{number(y)}" r="4"/>'


def _expiry(x: float, y: float) -> str:
    return f'<path class="expiry" d="M{number(x)} {number(y - 5)}l5 5-5 5-5-5z"/>'
