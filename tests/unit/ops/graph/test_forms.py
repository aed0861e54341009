"""The forms of a graph: their text, colours and time line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from identity.catalogue import CONTROL_PLANE
from ops.graph import html, mermaid, svg
from ops.graph.model import ELEMENTS, Health, IdentityGraph
from tests.unit.golden_report import reviewed_file
from tests.unit.ops.graph_world import NOW, GraphWorld, fifty_clusters, one_cluster, small_cluster

GOLDEN = Path(__file__).parent / "golden"
ATTACKS = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='alert(1)",
    "</script ",
    "<!--<script ",
    "]]><svg onload=alert(1)>",
    '"]; end\n  click n0 "javascript:alert(1)"',
    "$data &amp; <!-- \x00\x1b\u2028",
)


class Elements(HTMLParser):
    """Every element of a page with the names of its attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.data: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._inside = tag
        self.found.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.data.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def named(name: str) -> IdentityGraph:
    """A stack with one identity, whose names and errors are all `name`."""
    world = GraphWorld(unread=(name,))
    described = world.add_cluster(name, identities=CONTROL_PLANE[:1], data_plane=False)
    described["namespace"] = f"n{name}"
    identity = described["controlPlane"][CONTROL_PLANE[0].field]
    identity["credentialsSecretName"] = identity["clientID"] = f"s{name}"
    world.outputs["keyVaultName"] = f"v{name}"
    world.resources = []
    return world.graph()


def without_style(document: str) -> str:
    return re.sub(r"<style>.*?</style>", "<style/>", document, flags=re.DOTALL)


def test_a_small_stack_is_as_reviewed() -> None:
    graph = small_cluster().graph()

    reviewed_file(GOLDEN / "small.json", json.dumps(graph.to_json(), indent=2) + "\n")
    reviewed_file(GOLDEN / "small.svg", without_style(svg.document(graph)))
    reviewed_file(GOLDEN / "small.mmd", mermaid.document(graph))


def test_every_element_is_one_of_a_drawing_or_a_page() -> None:
    modules = Path(svg.__file__).parent.glob("*.py")
    used = {name for file in modules for name in re.findall(r'\belement\(\s*"([a-z ]+)"', file.read_text("utf-8"))}

    assert used == set(ELEMENTS)


def test_many_clusters_are_one_node_each() -> None:
    graph = fifty_clusters()
    lines = mermaid.document(graph).splitlines()

    assert sum("first expiry" in line or "expired" in line for line in lines) == 50
    assert "8 ok, 1 needs attention" in next(line for line in lines if "cluster-31" in line)
    assert "9 broken" in next(line for line in lines if "cluster-17" in line)
    assert len(lines) < 120
    document = svg.document(graph)
    assert document.count('class="node hostedCluster') == document.count('class="node') == 50


@pytest.mark.parametrize("made", [lambda: one_cluster().graph(), fifty_clusters], ids=["one", "fifty"])
def test_a_drawing_is_sound_xml_and_needs_no_network(made: Callable[[], IdentityGraph]) -> None:
    document = svg.document(made())
    root = ElementTree.fromstring(document)  # noqa: S314 - written here

    assert {element.tag.partition("}")[2] for element in root.iter()} <= {
        *("svg", "title", "style", "rect", "g", "text", "path", "circle"),
    }
    assert re.findall(r"https?:[^\s\"'<]+|url\(|@import|href", document) == ["http://www.w3.org/2000/svg"]


def test_the_page_loads_nothing_and_runs_its_own_script_alone() -> None:
    world = one_cluster()
    world.resources.append({"urn": "u::n", "type": "t", "custom": True, "outputs": {"key": "-----BEGIN PRIVATE KEY"}})
    graph = world.graph()
    page = html.document(graph)
    for document in (page, svg.document(graph), mermaid.document(graph), json.dumps(graph.to_json())):
        assert "PRIVATE" not in document, "no form of the graph has a key in it"
    elements = Elements(page)
    [data, _] = elements.data
    assert json.loads(data).items() >= graph.to_json().items()
    names = {name for _, attributes in elements.found for name in attributes}
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)

    assert not {"src", "srcset", "style", "action"} & names
    assert not [name for name in names if name.startswith("on")]
    assert {tag for tag, _ in elements.found}.isdisjoint({"link", "img", "iframe", "object", "form", "base"})
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]


def names(found: Any) -> Any:
    for attack in ATTACKS:
        found = example(attack)(found)
    return given(st.text(min_size=1, max_size=40))(found)


@names
def test_a_name_in_the_page_is_text(name: str) -> None:
    page, benign = Elements(html.document(named(name))), Elements(html.document(named("name")))

    assert page.found == benign.found
    assert page.data[1:] == benign.data[1:]
    assert not set("<>&") & set(page.data[0])
    assert json.loads(page.data[0])["nodes"] == named(name).to_json()["nodes"]


@names
def test_a_name_in_a_drawing_is_text(name: str) -> None:
    root, benign = (ElementTree.fromstring(svg.document(named(label))) for label in (name, "name"))  # noqa: S314

    assert [(element.tag, sorted(element.attrib)) for element in root.iter()] == [
        (element.tag, sorted(element.attrib)) for element in benign.iter()
    ]


@names
def test_a_name_in_mermaid_is_text(name: str) -> None:
    lines, benign = (mermaid.document(named(label)).splitlines() for label in (name, "name"))

    assert len(lines) == len(benign)
    for line, expected in zip(lines, benign, strict=True):
        assert re.sub(r'"[^"]*"', '""', line) == re.sub(r'"[^"]*"', '""', expected)
        assert not set("<>`$\\") & set(line.replace("<br>", "").replace("-->", "").replace(".->", ""))


STYLE: Final = (Path(svg.__file__).parent / "page/graph.css").read_text(encoding="utf-8")
COLOURS: Final = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", STYLE)
LIGHT, DARK = ({name: pair[scheme] for name, *pair in COLOURS} for scheme in (0, 1))
# Text needs 4.5; marks and borders that say something need 3.
TEXT: Final = [
    *((front, back) for front in ("text", "muted") for back in ("canvas", "surface", "frame", "accent-soft")),
    *(("accent", back) for back in ("surface", "accent-soft")),
    ("warning", "canvas"),
]
SHAPES: Final = [
    *((health, back) for health in ("ok", "warning", "error", "unknown") for back in ("canvas", "surface", "on-mark")),
    ("accent", "canvas"),
]


def luminance(colour: str) -> float:
    """Relative luminance, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(front: str, back: str) -> float:
    """Contrast ratio, https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    bright, dim = sorted((luminance(front), luminance(back)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back", "least"), [*((*pair, 4.5) for pair in TEXT), *((*pair, 3) for pair in SHAPES)]
)
def test_what_is_drawn_has_contrast_enough(scheme: dict[str, str], front: str, back: str, least: float) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21), "black on white has the greatest"
    assert contrast(scheme[front], scheme[back]) >= least


DAYS = st.integers(-700, 1400).map(lambda days: NOW + timedelta(days=days))


def test_rows_are_the_certificates_of_a_cluster_or_the_first_dates_of_each_of_a_fleet() -> None:
    first, second = svg.certificates(small_cluster().graph(), "hc1")
    assert (f"{first.expires:%F}", f"{first.renew_after:%F}") == ("2026-12-01", "2026-11-20")
    assert [row.health(NOW) for row in (first, second)] == [Health.WARNING, Health.OK]
    rows = {row.name: row for row in svg.of_fleet(fifty_clusters())}
    assert (len(rows), rows["cluster-17"].health(NOW)) == (50, Health.ERROR)
    assert f"{rows['cluster-31'].expires:%F}" == "2026-12-01", "one of its certificates, the others are later"


@given(st.lists(st.tuples(DAYS, st.none() | DAYS), min_size=1, max_size=5))
def test_everything_is_drawn_within_the_axis(dates: list[tuple[datetime, datetime | None]]) -> None:
    rows = [svg.TimelineRow("x", renewal, expiry) for expiry, renewal in dates]
    drawn = "".join(svg.timeline(rows, NOW).content)

    bars = re.findall(r'<rect class="\w+" x="([-\d.]+)" y="[\d.]+" width="([-\d.]+)"', drawn)
    assert all(float(width) >= 0 and float(x) >= 246 and float(x) + float(width) <= 1290.2 for x, width in bars)
    assert drawn.count('class="month"') <= 13


@pytest.mark.parametrize("made", [lambda: small_cluster().graph(), fifty_clusters], ids=["one", "fleet"])
def test_page_and_drawing_have_it(made: Callable[[], IdentityGraph]) -> None:
    graph = made()
    page = html.document(graph)
    assert svg.document(graph).count("Renewals and expiries") == 1
    assert page.count('<details class="dates">') == (len(graph.clusters) > 1)
    assert page.count("Renewals and expiries of the hosted cluster") == len(graph.clusters)


def test_identities_that_nothing_reports_on_are_counted() -> None:
    world = GraphWorld()
    assert (svg.timeline([], NOW).element(""), svg.timeline([], NOW).height) == ("", 0)
    for document in (html.document(world.graph()), svg.document(world.graph())):
        assert "The stack prod has no hosted cluster." in document
    world.add_cluster("hc1")

    page = html.document(world.graph())

    for counted in ("<b>12</b> identities</li>", "<b>9</b> ok</li>", "<b>3</b> of the guest cluster</li>"):
        assert counted in page
