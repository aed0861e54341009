"""Killed in the middle of `up` and of `destroy`: `idstack recover` loses nothing and doubles nothing.

Each scenario kills one of three victims at two seeded points; `make kills` runs all twenty-five.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from ops.stack.engine import Engine
from ops.stack.lock import LockedError
from tests.engine.killing import (
    Kill,
    Victim,
    documents,
    in_the_cloud,
    in_the_state,
    interrupted,
    interruption,
    small_stack,
)

_SCENARIOS: Final = 25
# The plugins' writes in an undisturbed `up` and `destroy`, for each `clusterSide`.
_WRITES: Final = {"hypershift": (54, 48), "stack": (71, 77)}


@dataclass(frozen=True)
class KillScenario:
    """One stack, killed twice."""

    cluster_side: str
    up: Kill
    destroy: Kill


def _scenario(seed: int) -> KillScenario:
    victims: tuple[Victim, ...] = get_args(Victim)
    chance = random.Random(seed)  # noqa: S311  # a draw that can be repeated
    cluster_side = "stack" if seed % 4 == 0 else "hypershift"
    up, destroy = (
        Kill(victims[seed % len(victims)], chance.randint(1, writes), chance.choice(("before", "after")))
        for writes in _WRITES[cluster_side]
    )
    return KillScenario(cluster_side, up, destroy)


def _scenarios() -> list[Any]:
    return [pytest.param(_scenario(seed), id=f"{_scenario(seed).up.victim} {seed}") for seed in range(_SCENARIOS)]


@pytest.mark.kills
@pytest.mark.parametrize("scenario", _scenarios())
def test_after_a_kill_recover_loses_nothing_and_doubles_nothing(scenario: KillScenario, tmp_path: Path) -> None:
    with small_stack(tmp_path, scenario.cluster_side, warm=False) as stack:
        seeded = stack.inventory()

        interrupted(stack, scenario.up, "up")
        if scenario.cluster_side == "stack":
            stack.idstack("recover")
        else:
            stack.idstack("recover", "--no-up")
            stack.up()  # what ends in no table: there are no probes
        stack.up("--expect-no-changes")

        state = in_the_state(stack)
        assert len(state) == len(set(state))
        assert in_the_cloud(stack, seeded) == set(state)

        interrupted(stack, scenario.destroy, "down")
        stack.idstack("recover", "--no-up")
        stack.pulumi("destroy", "--yes", "--skip-preview")

        assert {kind for kind, _ in in_the_cloud(stack, seeded)} <= {"keyvault-secret"}, "soft-deleted, as Azure has it"
        assert seeded <= stack.inventory()


@pytest.mark.slow
def test_a_locked_stack_is_left_alone_and_only_recover_prevents_twins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", str(tmp_path / ".localcloud"))
    with small_stack(tmp_path, "hypershift", warm=False) as stack:
        engine = Engine("local", root=stack.root, output=sys.stderr.fileno())

        with interruption(stack, Kill("engine", 1, what="graph"), "up") as [pid]:
            with pytest.raises(
                LockedError, match=rf"the stack local is locked by .*\(pid {pid}, .* still runs"
            ) as locked:
                engine.up()
            assert not locked.value.is_abandoned
        with pytest.raises(
            LockedError, match=rf"\(pid {pid}, .* which was killed.* `make recover STACK=local` unlocks"
        ):
            engine.up()

        stack.local_cloud("start")
        engine.unlock()
        stack.up("--continue-on-error", check=False)
        applications = [document["properties"] for document in documents(stack, "entra-application")]
        tags = Counter(tag for application in applications for tag in application.get("tags", ()))
        assert 2 in tags.values(), "Graph makes twins"
        recovered = stack.idstack("recover", check=False)
        assert recovered.returncode == 1
        assert "there is more than one application with the tag idstack:local:hc1-" in recovered.stderr
