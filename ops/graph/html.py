"""The graph as one self-contained HTML page: style, script, data and drawings are in it.

The page may run its own script and nothing else (Content-Security-Policy with the script's hash), and all text of the
stack is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Final

from identity.credentials import rfc3339
from ops.graph import svg
from ops.graph.model import (
    HEALTHS,
    KINDS,
    GraphNode,
    Health,
    IdentityGraph,
    NodeKind,
    escaped,
    first_expiry,
    icon,
    no_cluster,
    sentence,
)

_PAGE: Final = Path(__file__).parent / "page"
_TIMELINE: Final = 'class="graph timeline"'


def document(graph: IdentityGraph) -> str:
    """The page; the drawing of a hosted cluster is a template until the cluster is opened."""
    style, script = _read_asset("graph.css") + _read_asset("page.css"), _read_asset("page.js")
    sources = f"style-src {_hash(style)}; script-src {_hash(script)}"
    return Template(_read_asset("page.html")).substitute(
        # `data:` is the drawing itself when it becomes a PNG; nothing is fetched for it.
        policy=f"default-src 'none'; {sources}; img-src data:; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        stack=escaped(graph.stack),
        at=escaped(rfc3339.render(graph.at)),
        summary="".join(_summary(graph)),
        clusters="".join(_option(node.name) for node in graph.clusters),
        identities="".join(map(_option, dict.fromkeys(node.name for node in graph.of_kind(NodeKind.IDENTITY)))),
        unread="".join(_unread(graph)),
        dates="".join(_dates(graph)),
        empty="" if graph.clusters else f'<p class="nothing">{escaped(no_cluster(graph.stack))}</p>',
        cards="".join(_card(graph, node) for node in graph.clusters),
        data=_data(graph),
    )


def _summary(graph: IdentityGraph) -> Iterator[str]:
    identities = graph.of_kind(NodeKind.IDENTITY)
    yield f"<li><b>{len(graph.clusters)}</b> hosted cluster{'' if len(graph.clusters) == 1 else 's'}</li>"
    yield f"<li><b>{len(identities)}</b> {'identity' if len(identities) == 1 else 'identities'}</li>"
    counts = Counter(node.health for node in identities)
    for health in Health:
        if number := counts[health]:
            yield f"<li>{icon(health)} <b>{number}</b> {HEALTHS[health]}</li>"
    if number := counts[None]:
        yield f'<li><span class="square unreported"></span> <b>{number}</b> of the guest cluster</li>'


def _dates(graph: IdentityGraph) -> Iterator[str]:
    if len(graph.clusters) > 1 and (rows := svg.of_fleet(graph)):
        label = "First renewal and first expiry of each hosted cluster"
        drawing = svg.timeline(rows, graph.at).element(label, _TIMELINE)
        yield f'<details class="dates"><summary>Renewals and expiries</summary>{drawing}</details>'


def _unread(graph: IdentityGraph) -> Iterator[str]:
    if graph.unread:
        lines = "".join(f"<li>{escaped(reason)}</li>" for reason in graph.unread)
        yield f'<details class="unread"><summary>Not read: {len(graph.unread)}</summary><ul>{lines}</ul></details>'


def _option(name: str) -> str:
    return f'<option value="{escaped(name)}">{escaped(name)}</option>'


def _card(graph: IdentityGraph, cluster: GraphNode) -> str:
    health = cluster.health or Health.UNKNOWN
    chains, dates = svg.of_cluster(graph, cluster.name)
    label = f"hosted cluster {cluster.name}"
    squares = "".join(
        f'<span class="square {identity.health or "unreported"}" title="{escaped(sentence(identity))}"></span>'
        for identity in graph.identities(cluster.name)
    )
    return (
        f'<article class="cluster {health}" data-id="{escaped(cluster.id)}" '
        f'data-cluster="{escaped(cluster.name)}">'
        f'<h2><button type="button" class="head" aria-expanded="false" aria-label="{escaped(sentence(cluster))}">'
        f'{icon(health)}<span class="cluster-name">{escaped(cluster.name)}</span>'
        f'<span class="cluster-detail">{escaped(cluster.detail)}</span><span class="squares">{squares}</span>'
        f'<span class="expiry">{escaped(first_expiry(graph.expiry(cluster.name), graph.at))}</span>'
        '<span class="chevron" aria-hidden="true"></span></button></h2>'
        '<template><p class="tools"><button type="button" class="png">Save PNG</button></p>'
        f"{chains.element(f'Identities of the {label}', role='group')}"
        f"{dates.element(f'Renewals and expiries of the {label}', _TIMELINE)}</template>"
        '<div class="drawing" hidden></div></article>\n'
    )


def _data(graph: IdentityGraph) -> str:
    """The JSON form, without a character that could end its element."""
    document = {
        **graph.to_json(),
        "kinds": dict(KINDS),
        "healths": dict(HEALTHS),
    }
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _read_asset(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A source of a Content-Security-Policy: the element with exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
