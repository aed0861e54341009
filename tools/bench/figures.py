"""The lines of the benchmark, each a value of ours beside its peer's, and what is computed for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from math import isnan
from typing import Any, Final, Literal

from rich import box
from rich.table import Table

Direction = Literal["at most", "at least"]


@dataclass(frozen=True)
class Limit:
    """What the ratio must be: `at most` or `at least` so much."""

    direction: Direction
    value: float

    def holds(self, ratio: float) -> bool:
        """Whether the ratio keeps the limit; a ratio that could not be measured (NaN) keeps none."""
        return ratio <= self.value if self.direction == "at most" else ratio >= self.value

    def __str__(self) -> str:
        return f"{self.direction} {_number(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """`ours` and `peer` are in `unit`; without a limit they are for comparison. `note` states how it was measured."""

    name: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    limit: Limit | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        """Ours divided by the peer's; NaN for a peer of nothing."""
        return self.ours / self.peer if self.peer else float("nan")

    @property
    def holds(self) -> bool:
        """Whether the limit is kept; where there is none, always."""
        return self.limit is None or self.limit.holds(self.ratio)

    def to_json(self) -> dict[str, Any]:
        """The figure with all of its digits."""
        limit = None if self.limit is None else {"direction": self.limit.direction, "value": self.limit.value}
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours,
            "peer": self.peer,
            "peerName": self.peer_name,
            "ratio": None if isnan(self.ratio) else self.ratio,
            "limit": limit,
            "holds": self.holds,
            "note": self.note,
        }


def table(figures: Iterable[Figure]) -> Table:
    """The figures for people."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("figure", "ours", "peer", "ratio", "limit", ""):
        made.add_column(heading, justify="right" if heading in {"ours", "peer", "ratio"} else "left")
    for figure in figures:
        verdict = "" if figure.limit is None else "[green]holds[/]" if figure.holds else "[bold red]MISSED[/]"
        made.add_row(
            f"{figure.name}\n[dim]against {figure.peer_name}[/]",
            f"{_number(figure.ours)} {figure.unit}",
            f"{_number(figure.peer)} {figure.unit}",
            _number(figure.ratio),
            str(figure.limit or ""),
            verdict,
        )
    return made


def _number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if isnan(value):
        return "unknown"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):.10f}".rstrip("0").rstrip(".")


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
