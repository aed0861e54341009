"""Renewals and expiries of certificates as SVG: a row for each on one axis of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ops.graph.layout import DETAIL_SIZE, fitted
from ops.graph.model import Health, IdentityGraph, NodeKind, escaped, number

WIDTH: Final = 1390.0
# The end of the names, and the begin and end of the axis; dates are written behind it.
_NAMES, _BEGIN, _END = 230.0, 246.0, 1290.0
_MARGIN, _HEADING, _ROW = 20.0, 56.0, 20.0
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


def of_cluster(graph: IdentityGraph, cluster: str) -> list[TimelineRow]:
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
        rows = of_cluster(graph, cluster.name)
        if rows:
            renewals = [row.renew_after for row in rows if row.renew_after is not None]
            first.append(TimelineRow(cluster.name, min(renewals, default=None), min(row.expires for row in rows)))
    return first


def height(rows: Sequence[TimelineRow]) -> float:
    """The height of the drawing; 0 without rows."""
    return _HEADING + len(rows) * _ROW + _MARGIN if rows else 0.0


def inline(rows: Sequence[TimelineRow], now: datetime, label: str) -> str:
    """The drawing as an element of the page; empty without rows."""
    if not rows:
        return ""
    size = f'viewBox="0 0 {number(WIDTH)} {number(height(rows))}" width="{number(WIDTH)}"'
    return (
        f'<svg class="graph timeline" {size} height="{number(height(rows))}" role="img" '
        f'aria-label="{escaped(label)}">\n{content(rows, now)}</svg>\n'
    )


def content(rows: Sequence[TimelineRow], now: datetime) -> str:
    return "".join(_content(rows, now)) if rows else ""


def _content(rows: Sequence[TimelineRow], now: datetime) -> Iterator[str]:
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
