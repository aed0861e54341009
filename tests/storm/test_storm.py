"""A storm of operations and kills, after each of which everything must hold (decision record 0056).

`make nightly` has a short one, `make storm` a long one: a plan by its NAME, or one of another seed each day unless SEED
is given.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.storm.driver import Storm
from tests.storm.plan import Operation, drawn, parsed
from tests.storm.plans import named
from tests.storm.world import storm_world

OPERATIONS: Final = 300
KILLS: Final = 220
"""Some come too late, when the command has already ended."""
DAYS: Final = 60
_SHORT_SEED, _SHORT_OPERATIONS, _SHORT_KILLS = 234, 8, 6


def _storm(root: Path, capsys: pytest.CaptureFixture[str], seed: int, plan: list[Operation]) -> None:
    def report(line: str) -> None:
        with capsys.disabled():
            print(line, flush=True)

    # Plugins that are forked outlive their engine; a kill at a request shows that those of users end by themselves.
    is_warm = not any(operation.disturbance and operation.disturbance.moment for operation in plan)
    with storm_world(root, is_warm=is_warm) as world, world.signing_in() as clients:
        storm = Storm(world, clients, seed, report)
        storm.run(plan)
    report(storm.summary())


@pytest.mark.nightly
def test_everything_holds_after_each_operation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _storm(tmp_path, capsys, _SHORT_SEED, drawn(_SHORT_SEED, _SHORT_OPERATIONS, _SHORT_KILLS, DAYS))


@pytest.mark.storm
def test_everything_holds_in_a_long_storm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("STORM_SEED") or datetime.now(UTC).toordinal())
    name, text = os.environ.get("STORM_NAME"), os.environ.get("STORM_PLAN", "")
    plan = (named(name) if name else parsed(text)) or drawn(seed, OPERATIONS, KILLS, DAYS)
    _storm(tmp_path, capsys, seed, plan)
