"""`idstack graph`: the chain from each HostedCluster to pod and role, with expiry and health, to look at."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from ops.access.cluster_state import read_cluster_state
from ops.access.managed_identities import read_managed_identities
from ops.commands.options import DEFAULT_STACK, StackOption
from ops.graph import html, mermaid, svg
from ops.graph.build import Sources, build
from ops.graph.model import IdentityGraph
from ops.outputs import probes
from ops.outputs.rows import has_probes, rows
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError


class GraphFormat(StrEnum):
    """The forms that the graph is written in."""

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
        GraphFormat, typer.Option("--format", "-f", help="Page, drawing, text for Markdown, or data for scripts.")
    ] = GraphFormat.HTML,
    cluster: Annotated[
        str | None, typer.Option("--cluster", "-c", help="Name of the one hosted cluster to show; all by default.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; standard output by default.")] = None,
) -> None:
    """Draw HostedClusters, identities, secrets, classes, pods, roles and scopes, with expiry and health.

    The page needs no network and no server. Of more than three hosted clusters SVG and Mermaid are an overview;
    `--cluster` draws one of them whole. Raises CommandError for an unknown stack or cluster, a file that cannot be
    written, and a page that would be printed on a terminal.
    """
    if form is GraphFormat.HTML and out is None and sys.stdout.isatty():
        raise CommandError("a page is for a browser: name its file with --out graph.html")
    found = read(stack)
    if cluster is not None:
        known = [node.name for node in found.clusters]
        if cluster not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise CommandError(f"the stack {stack} has no hosted cluster {cluster}; {has}")
        found = found.only(cluster)
    document = _WRITTEN[form](found)
    if out is None:
        sys.stdout.write(document)
        return
    try:
        out.write_text(document, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{out} cannot be written: {error.strerror}") from None
    print(out.absolute())


def read(stack: str) -> IdentityGraph:
    """The graph of a stack as it is now. Raises CommandError for a stack that does not exist.

    What cannot be read (probes, managed identities, the management cluster) is named in the graph.
    """
    engine = Engine(stack, output=sys.stderr.fileno())
    environment = local_cloud.of(stack)
    outputs = engine.outputs()
    answers, unread = None, []
    if environment and has_probes(outputs):
        try:
            answers = probes.read(Path(environment.kubeconfig))
        except probes.Unreachable as error:
            unread.append(f"the credential probes: {error}")
    return build(
        Sources(
            stack=stack,
            at=datetime.now(UTC),
            outputs=outputs,
            rows=rows(outputs, answers),
            managed=read_managed_identities(engine, outputs),
            state=read_cluster_state(engine, outputs),
            resources=engine.resources(),
            unread=tuple(unread),
        )
    )
