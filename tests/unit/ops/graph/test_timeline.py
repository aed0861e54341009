"""The time line of renewals and expiries: whose, in which health, and on which scale."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.graph import html, svg, timeline
from ops.graph.model import Health, IdentityGraph
from ops.graph.timeline import TimelineRow
from tests.unit.ops.graph_world import NOW, GraphWorld, fifty_clusters, small_cluster

DAYS = st.integers(-700, 1400).map(lambda days: NOW + timedelta(days=days))


def test_a_clusters_rows_are_its_certificates() -> None:
    first, second = timeline.of_cluster(small_cluster().graph(), "hc1")

    assert first.expires == datetime(2026, 12, 1, tzinfo=UTC)
    assert first.renew_after == datetime(2026, 11, 20, tzinfo=UTC)
    assert [row.health(NOW) for row in (first, second)] == [Health.WARNING, Health.OK]


def test_a_fleets_rows_are_the_first_dates_of_each_cluster() -> None:
    rows = {row.name: row for row in timeline.of_fleet(fifty_clusters().graph())}

    assert len(rows) == 50
    assert rows["cluster-17"].health(NOW) is Health.ERROR
    assert f"{rows['cluster-31'].expires:%Y-%m-%d}" == "2026-12-01", "one of its certificates, the others are later"


@given(st.lists(st.tuples(DAYS, st.none() | DAYS), min_size=1, max_size=5))
def test_everything_is_drawn_within_the_axis(dates: list[tuple[datetime, datetime | None]]) -> None:
    rows = [TimelineRow("x", renewal, expiry) for expiry, renewal in dates]
    drawn = timeline.content(rows, NOW)

    bars = re.findall(r'<rect class="\w+" x="([-\d.]+)" y="[\d.]+" width="([-\d.]+)"', drawn)
    assert all(float(width) >= 0 and float(x) >= 246 and float(x) + float(width) <= 1290.2 for x, width in bars)
    assert drawn.count('class="month"') <= 13


@pytest.mark.parametrize("graph", [small_cluster().graph(), fifty_clusters().graph()], ids=["one", "fleet"])
def test_page_and_drawing_have_it(graph: IdentityGraph) -> None:
    assert svg.document(graph).count("Renewals and expiries") == 1
    assert html.document(graph).count('<details class="dates">') == (len(graph.clusters) > 1)
    assert html.document(graph).count("Renewals and expiries of the hosted cluster") == len(graph.clusters)


def test_identities_that_nothing_reports_on_are_counted() -> None:
    world = GraphWorld()
    assert (timeline.inline([], NOW, ""), timeline.height([])) == ("", 0)
    for document in (html.document(world.graph()), svg.document(world.graph())):
        assert "The stack prod has no hosted cluster." in document
    world.add_cluster("hc1")

    page = html.document(world.graph())

    for counted in ("<b>12</b> identities</li>", "<b>9</b> ok</li>", "<b>3</b> of the guest cluster</li>"):
        assert counted in page
