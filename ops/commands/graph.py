"""`idstack graph`: a drawing of the chain from each HostedCluster to pod and role, with expiry and health."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from ops.commands.options import DEFAULT_STACK, ClusterOption, Screen, StackOption, output_option, require_cluster
from ops.doctor.examination import UnreadError, read_status
from ops.doctor.report import findings
from ops.graph import html, mermaid, svg
from ops.graph.build import build
from ops.graph.model import Health, IdentityGraph
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, writing


class GraphFormat(StrEnum):
    HTML = "html"
    SVG = "svg"
    MERMAID = "mermaid"
    JSON = "json"


_WRITTEN: Final[dict[GraphFormat, Callable[[IdentityGraph], str]]] = {
    GraphFormat.HTML: html.document,
    GraphFormat.SVG: svg.document,
    GraphFormat.MERMAID: mermaid.document,
    GraphFormat.JSON: lambda graph: json.dumps(graph.to_json(), indent=2) + "\n",
}


def graph(
    stack: StackOption = DEFAULT_STACK,
    form: Annotated[
        GraphFormat,
        typer.Option(
            *("--format", "-f"), help="Page (it saves a PNG, too), drawing, text for Markdown, or data for scripts."
        ),
    ] = GraphFormat.HTML,
    cluster: ClusterOption = None,
    output: Annotated[
        Path | None, output_option("File to write; standard output by default. --format is the form.")
    ] = None,
) -> None:
    """Draw HostedClusters, identities, secrets, classes, pods, roles and scopes, with expiry and health.

    The page needs no network and no server. With more than three hosted clusters, SVG and Mermaid are an overview;
    `--cluster` draws one of them whole. The findings of `status` are on the nodes, and on standard error with
    their fixes. Exits with 1 where `status` does, and with 3 if something about a node could not be read.
    """
    if form is GraphFormat.HTML and output is None and sys.stdout.isatty():
        raise CommandError("a page is for a browser: name its file with --output graph.html")
    status = read_status(Engine(stack, output=sys.stderr.fileno()))
    drawn = build(status)
    require_cluster(stack, cluster, [node.name for node in drawn.clusters])
    if cluster is not None:
        drawn = drawn.only(cluster)
    document = _WRITTEN[form](drawn)
    if output is None:
        sys.stdout.write(document)
    else:
        with writing("the graph"):
            output.write_text(document, encoding="utf-8")
        print(output.absolute())
    console = Screen(as_json=True).console
    for finding in findings(status.results):
        console.print()
        console.print(finding)
    status.require_sound()
    if drawn.unread and any(node.health is Health.UNKNOWN for node in drawn.nodes):
        raise UnreadError(drawn.unread)
