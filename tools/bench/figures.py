"""One line of the benchmark: a value of ours beside its peer's, their ratio, and whether the limit holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal

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
