"""The graph as one self-contained HTML page: style, script, data and drawings are in it.

The page may run its own script and nothing else (Content-Security-Policy with the script's hash), and all text of the
stack is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from string import Template
from typing import Final

from identity.credentials import rfc3339
from ops.graph import svg
from ops.graph.model import (
    HEALTHS,
    KINDS,
    TABLES,
    GraphNode,
    Health,
    IdentityGraph,
    NodeKind,
    element,
    escaped,
    first_expiry,
    icon,
)

_PAGE: Final = Path(__file__).parent / "page"
_TIMELINE: Final = 'class="graph timeline"'


def document(graph: IdentityGraph) -> str:
    """The page; the drawing of a hosted cluster is a template until the cluster is opened."""
    style, script = _read_asset("graph.css") + _read_asset("page.css"), _read_asset("page.js")
    unread = [element("reason", reason=reason) for reason in graph.unread]
    sources = f"style-src {_hash(style)}; script-src {_hash(script)}"
    return Template(_read_asset("page.html")).substitute(
        # `data:` is the drawing itself when it becomes a PNG; nothing is fetched for it.
        policy=f"default-src 'none'; {sources}; img-src data:; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        stack=escaped(graph.stack),
        at=escaped(rfc3339.render(graph.at)),
        summary="".join(_summary(graph)),
        clusters=_options(graph.clusters),
        identities=_options(graph.of_kind(NodeKind.IDENTITY)),
        unread=element("unread", number=len(unread), lines=unread) if unread else "",
        dates=_dates(graph),
        empty="" if graph.clusters else element("nothing", text=TABLES["empty"].format(stack=graph.stack)),
        cards="".join(_card(graph, node) for node in graph.clusters),
        data=_data(graph),
    )


def _options(nodes: Iterable[GraphNode]) -> str:
    """Each name once."""
    return "".join(element("option", name=name) for name in dict.fromkeys(node.name for node in nodes))


def _summary(graph: IdentityGraph) -> Iterator[str]:
    identities = graph.of_kind(NodeKind.IDENTITY)
    number, counts = len(graph.clusters), Counter(node.health for node in identities)
    yield element("hosted clusters", number=number, plural="" if number == 1 else "s")
    yield element("identities", number=len(identities), word="identity" if len(identities) == 1 else "identities")
    for health in Health:
        if counts[health]:
            yield element("health", icon=icon(health), number=counts[health], health=HEALTHS[health])
    if counts[None]:
        yield element("unreported", number=counts[None])


def _dates(graph: IdentityGraph) -> str:
    if len(graph.clusters) < 2 or not (rows := svg.of_fleet(graph)):
        return ""
    label = "First renewal and first expiry of each hosted cluster"
    return element("dates", drawing=svg.timeline(rows, graph.at).element(label, _TIMELINE))


def _card(graph: IdentityGraph, cluster: GraphNode) -> str:
    health = cluster.health or Health.UNKNOWN
    expiry = first_expiry(graph.expiry(cluster.name), graph.at)
    squares = [element("square", node=node) for node in graph.identities(cluster.name)]
    chains, dates = svg.of_cluster(graph, cluster.name)
    drawings = {
        "chains": chains.element(f"Identities of the hosted cluster {cluster.name}", role="group"),
        "dates": dates.element(f"Renewals and expiries of the hosted cluster {cluster.name}", _TIMELINE),
    }
    card = {"health": health, "icon": icon(health), "expiry": expiry, "squares": squares}
    return element("hosted cluster", cluster=cluster, **card, **drawings)


def _data(graph: IdentityGraph) -> str:
    """The JSON form, without a character that could end its element."""
    document = {**graph.to_json(), "kinds": dict(KINDS), "healths": dict(HEALTHS)}
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _read_asset(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A source of a Content-Security-Policy: the element with exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
