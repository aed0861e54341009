"""A browser for all tests of this folder, and the files that it opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from ops.graph import html, svg
from ops.graph.model import IdentityGraph
from tests.browser.browser import Browser, running
from tests.unit.ops.graph_world import fifty_clusters, one_cluster, small_cluster
from tools import clients

Files: TypeAlias = Mapping[str, Path]
_WORLDS: Final[Mapping[str, Callable[[], IdentityGraph]]] = {
    "small": lambda: small_cluster().graph(),
    "one": lambda: one_cluster().graph(),
    "fifty": fifty_clusters,
}


@pytest.fixture(scope="session")
def folder() -> Path:
    """The installed driver."""
    return clients.browser()


@pytest.fixture(scope="session")
def browser(folder: Path) -> Iterator[Browser]:
    """Chromium."""
    with running(folder) as found:
        yield found


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Pages and drawings by name: `one.html`, `fifty.svg` and so on."""
    directory = tmp_path_factory.mktemp("graphs")
    found = {}
    for name, graph in _WORLDS.items():
        for suffix, document in (("html", html.document), ("svg", svg.document)):
            file = directory / f"{name}.{suffix}"
            file.write_text(document(graph()), encoding="utf-8")
            found[file.name] = file
    return found
