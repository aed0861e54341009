"""What our program costs by itself, against a flat script that registers the same resources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from tools.bench.arithmetic import MIDDLE, of_the_middle_round
from tools.bench.figures import Figure, Limit
from tools.bench.measure import in_turn
from tools.bench.stacks import flat_project, local_stack, program_cost

_ROUNDS: Final = 7


def program() -> Iterator[Figure]:
    """Both programs over the same state, in turn; the engine finds no change for either, so they do the same."""
    with local_stack() as stack:
        stack.up()
        resources = len(json.loads(stack.pulumi("stack", "export").stdout)["deployment"]["resources"])
        with flat_project(stack) as (directory, variables):
            ours, flat = in_turn(
                _ROUNDS,
                lambda: program_cost(stack, stack.root),
                lambda: program_cost(stack, directory, variables),
            )
    what = f"the program's own process; {resources} resources and components"
    user, flat_user = of_the_middle_round([run.user for run in ours], [run.user for run in flat])
    yield Figure(
        name="user CPU for each resource",
        unit="ms",
        ours=1000 * user / resources,
        peer=1000 * flat_user / resources,
        peer_name="a flat script on the bare SDK",
        limit=Limit("at most", 0.9),
        note=f"{MIDDLE} of {_ROUNDS}, {what}",
    )
    yield Figure(
        name="peak memory of the program",
        unit="MB",
        ours=min(run.peak for run in ours),
        peer=min(run.peak for run in flat),
        peer_name="the same script",
        limit=Limit("at most", 1.25),
        note=f"least of {_ROUNDS} runs in turn, {what}",
    )
