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
    CHIP_PAD,
    DETAIL_SIZE,
    MARK,
    NAME_SIZE,
    PAD,
    Box,
    Drawing,
    Line,
    draw,
    fitted,
    room_for_name,
)
from ops.graph.model import (
    TABLES,
    GraphNode,
    Health,
    IdentityGraph,
    Markup,
    NodeKind,
    Relation,
    element,
    first_expiry,
    mark,
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
    content: Sequence[Markup]
    cluster: str = ""

    def element(self, label: str, attributes: str = 'class="graph"', role: str = "img") -> Markup:
        """The drawing as an element of the page; empty without a height."""
        if not self.height:
            return Markup()
        return element("svg", **vars(self), label=label, attributes=Markup(attributes), role=role)


def overview(graph: IdentityGraph) -> Picture:
    rows, room = -(-len(graph.clusters) // _COLUMNS), _COLUMNS * (_WIDTH + _GAP) - _GAP
    vaults = ", ".join(node.name for node in graph.of_kind(NodeKind.VAULT))
    title = fitted(f"{len(graph.clusters)} hosted clusters of the stack {graph.stack}", 16, room)
    note = fitted(f"secrets in {vaults}, fetched as the key-vault-user", DETAIL_SIZE, room)
    cards = (_overview_card(graph, cluster, index) for index, cluster in enumerate(graph.clusters))
    content = [element("overview", x=_MARGIN, title=title, note=note), *cards]
    return Picture(2 * _MARGIN + room, 2 * _MARGIN + _HEADER + rows * (_HEIGHT + _GAP) - _GAP, content)


def _overview_card(graph: IdentityGraph, cluster: GraphNode, index: int) -> Markup:
    x = _MARGIN + index % _COLUMNS * (_WIDTH + _GAP)
    y = _MARGIN + _HEADER + index // _COLUMNS * (_HEIGHT + _GAP)
    room, identities = _WIDTH - 2 * PAD, graph.identities(cluster.name)
    step = min(_SQUARE + 4, room / max(len(identities), 1))
    squares = [
        element("overview square", node=node, x=PAD + index * step, width=min(_SQUARE, step), height=_SQUARE)
        for index, node in enumerate(identities)
    ]
    texts = {
        "name": fitted(cluster.name, NAME_SIZE, room - MARK),
        "detail": fitted(cluster.detail, DETAIL_SIZE, room - MARK, is_name=False),
        "expiry": fitted(first_expiry(graph.expiry(cluster.name), graph.at), DETAIL_SIZE, room, is_name=False),
    }
    marked = mark(cluster.health or Health.UNKNOWN, _WIDTH - PAD - 6, 26)
    size = {"width": _WIDTH, "height": _HEIGHT, "pad": PAD}
    return element("overview card", node=cluster, x=x, y=y, squares=squares, mark=marked, **texts, **size)


# More hosted clusters are drawn as an overview.
WHOLE: Final = 3
_STYLE: Final = Path(__file__).parent / "page/graph.css"


def document(graph: IdentityGraph) -> str:
    """An SVG file, which follows the viewer's light or dark scheme."""
    if not graph.clusters:
        pictures = [Picture(WIDTH, 60.0, [element("nothing drawn", text=TABLES["empty"].format(stack=graph.stack))])]
    elif len(graph.clusters) > WHOLE:
        pictures = [overview(graph), timeline(of_fleet(graph), graph.at)]
    else:
        pictures = [picture for cluster in graph.clusters for picture in of_cluster(graph, cluster.name)]
    parts, y = [], 0.0
    for picture in pictures:
        cluster = element("of cluster", cluster=picture.cluster) if picture.cluster else ""
        parts.append(element("part", y=y, cluster=cluster, content=picture.content))
        y += picture.height
    title = f"Identities of the stack {graph.stack}"
    whole = element("file", title=title, style=Markup(_STYLE.read_text(encoding="utf-8")), parts=parts)
    width = max(WIDTH, *(picture.width for picture in pictures))
    return Picture(width, y, [whole]).element(title, 'xmlns="http://www.w3.org/2000/svg" class="graph"')


def of_cluster(graph: IdentityGraph, cluster: str) -> tuple[Picture, Picture]:
    """The chains of a hosted cluster, and the dates of its certificates."""
    drawing = draw(graph.only(cluster))
    chains = Picture(drawing.width, drawing.height, list(_chains(drawing)), cluster)
    return chains, timeline(certificates(graph, cluster), graph.at)


def _chains(drawing: Drawing) -> Iterator[Markup]:
    yield from (element("heading", x=x, y=30, text=name) for x, name in drawing.headings)
    if drawing.note is not None:
        yield element("heading", x=drawing.note[0], y=45, text=drawing.note[1])
    yield from (element("frame", frame=frame) for frame in drawing.frames)
    yield element("edges", lines=[element("line", edge=line.edge, path=_path(line)) for line in drawing.lines])
    for box in drawing.boxes:
        yield from _card(box)


def _path(line: Line) -> Markup:
    (x, y), (end_x, end_y) = line.begin, line.end
    if abs(y - end_y) < 0.5:
        return element("level", x=x, y=y, end_x=end_x)
    middle, radius = end_x - line.gap / 2, 8.0 if end_y > y else -8.0
    if line.edge.relation is Relation.USES:  # the branch of a tree
        return element("branch", x=x, y=y, bend=middle - 8, radius=radius, turn=end_y - radius, end_x=end_x)
    return element("curve", x=x, y=y, begin=end_x - line.gap, middle=middle, end_x=end_x, end_y=end_y)


def _card(box: Box) -> Iterator[Markup]:
    node, texts = box.node, list(_texts(box))
    marked = mark(node.health, box.width - PAD - 4, box.height / 2) if node.health else ""
    yield element("card", box=box, node=node, health=f" {node.health}" if marked else "", texts=texts, mark=marked)
    for chip in box.chips:
        x, y = box.x + chip.x, box.y + chip.y
        yield element("chip", chip=chip, x=x, y=y, radius=chip.height / 2, pad=CHIP_PAD)


def _texts(box: Box) -> Iterator[Markup]:
    """The name in one or two lines, and the detail below the name."""
    texts = [("name", line) for line in box.lines]
    if box.node.detail:
        room = room_for_name(box.width, box.node)
        texts.append(("detail", fitted(box.node.detail, DETAIL_SIZE, room, is_name=False)))
    baselines = [20.0, 36.0] if len(texts) > 1 or box.chips else [27.0]
    for (role, text), y in zip(texts, baselines, strict=False):
        yield element("text", role=role, x=PAD, y=y, text=text)


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
    return Picture(WIDTH, height, list(_timeline(rows, now))) if rows else Picture(WIDTH, 0.0, ())


def _timeline(rows: Sequence[TimelineRow], now: datetime) -> Iterator[Markup]:
    dates = [now, *(row.expires for row in rows), *(row.renew_after for row in rows if row.renew_after)]
    begin, end = min(dates), max(dates)
    end = max(end, begin + timedelta(days=1))

    def place(date: datetime) -> float:
        return _BEGIN + (date - begin) / (end - begin) * (_END - _BEGIN)

    bottom = _HEADING + len(rows) * _ROW - 4
    yield element("key", x=_MARGIN)
    for month in _months(begin, end):
        yield element("month", x=place(month), top=_HEADING - 8, bottom=bottom, y=_HEADING - 12, month=month)
    yield element("now", x=place(now), bottom=bottom, now=now)
    for index, row in enumerate(rows):
        y = _HEADING + index * _ROW + _ROW / 2
        due = max(min(row.renew_after or row.expires, row.expires), begin)
        due_x, end_x = place(due), place(row.expires)
        parts = [
            element("bar", kind="current", x=place(min(now, due)), y=y - 2, width=due_x - place(min(now, due))),
            element("bar", kind="due", x=due_x, y=y - 2, width=end_x - due_x),
            *([element("renewal", x=due_x, y=y)] if row.renew_after else []),
            element("expiry", x=end_x, y=y - 5),
        ]
        due_at = f"renewal due {row.renew_after:%Y-%m-%d}, " if row.renew_after else ""
        name, places = fitted(row.name, DETAIL_SIZE, _NAMES - _MARGIN), {"x": _MARGIN, "y": y + 4, "date_x": _END + 14}
        yield element("certificate", row=row, health=row.health(now), due=due_at, name=name, parts=parts, **places)


def _months(begin: datetime, end: datetime) -> Iterator[datetime]:
    """First days of months in between, so few that their names do not overlap."""
    first = begin.year * 12 + begin.month
    step = -(-(end.year * 12 + end.month - first) // _MOST_TICKS) or 1
    for month in range(first, end.year * 12 + end.month, step):
        yield datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
