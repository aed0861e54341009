"""A year of daily runs: upgrades, a lost week, a leaked key and an outage of Entra ID, and no other failed sign-in.

`make year` writes the table of it to `year.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from tests.engine.clients import report, signing_in
from tests.engine.rotations import Rotating, ageing_stack
from tests.engine.year import DAYS, LIFE, Year, require_a_good_year, table
from tests.harness import PROJECT

pytestmark = pytest.mark.year


@pytest.fixture
def rotating(tmp_path: Path) -> Iterator[Rotating]:
    """A stack that was brought up a year ago."""
    with ageing_stack(tmp_path, days=DAYS + 2, life=LIFE, cluster_side="stack") as rotating:
        rotating.stack.up()
        yield rotating


def test_a_year_of_daily_runs(rotating: Rotating, capsys: pytest.CaptureFixture[str]) -> None:
    mounts = Path(rotating.stack.environment.mounts_dir, "clusters-hc1")
    file = next(mounts.glob("*/mnt/certs/cloud-provider-hc1-json"))
    written = PROJECT / "year.md"
    with signing_in(rotating.stack, file, pause=1) as clients, written.open("w") as output:
        for client in clients.values():
            client.await_certificates(1)
        year = Year(rotating, clients)
        try:
            for day in year.pass_by():
                with capsys.disabled():
                    print(day, flush=True)
        finally:
            console = Console(file=output, width=1000)
            console.print(table(year.days))
            console.print(f"On {len(year.skipped)} days nothing was due, and no engine ran.")
            console.print(report(clients))

    require_a_good_year(year.days)
    assert len(rotating.registered()) <= 2
    assert rotating.stack.preview() == {}
