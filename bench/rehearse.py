"""A rehearsal against the runs of the engine that it cannot do without: two `up`s and one `down`."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.figures import Figure, Limit
from tests.engine.rehearsals import rehearsals

_STACK: Final = "prod"
# The parts of its report that are those runs.
_RUNS: Final = ("base", "head", "down")


def rehearse() -> Figure:
    """Time of the whole command for another role set, and of those runs in it, with its clients beside them."""
    with TemporaryDirectory(prefix="bench-") as directory, rehearsals(Path(directory), warm=False) as project:
        before = project.start(_STACK)
        project.write(_STACK, {**before, "roles": "hypershift"})
        begun = time.monotonic()
        found = project.rehearse(_STACK)
        took = time.monotonic() - begun
    assert found.findings == [], found.findings
    return Figure(
        name="a rehearsal of another role set",
        unit="s",
        ours=took,
        peer=sum(found.document["seconds"][part] for part in _RUNS),
        peer_name="its two ups and one down",
        limit=Limit("at most", 1.5),
        note="local cloud, clients, a second run of the head and the removal of all of it are the rest",
    )
