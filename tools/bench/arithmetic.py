"""What is computed from measurements: growth exponents and critical paths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Final

MIDDLE: Final = "the round of the median ratio"
"""How figures by `of_the_middle_round` say it in their notes."""


def growth_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The p of cost ~ size^p, by least squares on the logarithms. Two sizes differ at least."""
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    covariance = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return covariance / math.fsum((a - mean_x) ** 2 for a in x)


def critical_path(needs: Mapping[str, Sequence[str]], weights: Mapping[str, float]) -> tuple[float, list[str]]:
    """The heaviest chain of nodes that need each other: its weight, and its nodes in order.

    `needs` has what each node waits for; a node without a weight weighs nothing. Raises graphlib.CycleError.
    """
    total: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for node in TopologicalSorter(needs).static_order():
        before[node] = max(needs.get(node, ()), key=total.__getitem__, default=None)
        total[node] = weights.get(node, 0.0) + (total[previous] if (previous := before[node]) is not None else 0.0)
    chain: list[str] = [max(total, key=total.__getitem__)]
    while (previous := before[chain[-1]]) is not None:
        chain.append(previous)
    return total[chain[0]], chain[::-1]


def most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    """How many of the spans (begin, end) overlap at the busiest moment."""
    moments = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    running = most = 0
    for _, change in moments:
        running += change
        most = max(most, running)
    return most


def of_the_middle_round(ours: Sequence[float], peers: Sequence[float]) -> tuple[float, float]:
    """Both values of the round with the median ratio, of rounds that measured one after the other.

    The speed of a machine changes from round to round: the least of each side may come from different speeds.
    """
    rounds = sorted(zip(ours, peers, strict=True), key=lambda pair: pair[0] / pair[1])
    return rounds[len(rounds) // 2]
