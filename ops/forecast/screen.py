"""The forecast as people read it: a table, what is met first, advice, and the paragraph of a preview."""

from __future__ import annotations

from typing import Final

from rich.table import Table
from rich.text import Text

from ops.forecast.forecast import WARN_FROM, Forecast, Use
from ops.outputs.tables import fitted

# The table on narrow screens.
_STACKED: Final = ((("limit", "at", "source"), ("used", "share", "more clusters")),)


def table(found: Forecast, width: int) -> Table:
    """A line for each limit of which something is taken, for `width` columns."""
    return fitted([_line(use) for use in found.uses], _STACKED, width)


def summary(found: Forecast) -> str:
    """What is met first, and the advice; each on a line."""
    first = found.first
    if first is None:
        lines = ["No limit is met as clusters are added: the stacks have no hosted cluster, whose share would grow."]
    else:
        lines = [f"Met first: {first.limit.name}, after {_clusters(first)} ({first.holder})."]
    lines += [f"For {use.limit.condition}: {use.limit.name}, after {_clusters(use)}." for use in found.conditional]
    words = {"subscriptions": "Subscriptions", "vaults": "Vaults", "pollInterval": "Poll interval"}
    lines += [f"{words[key]}: {text}." for key, text in found.advice().items()]
    return "\n".join(lines)


def warning(found: Forecast, stack: str) -> str | None:
    """One paragraph if a limit is near, for the end of a preview; None otherwise."""
    if not found.near:
        return None
    uses = "; ".join(f"{use.limit.name}: {_number(use.used)} of {_number(use.limit.most)}" for use in found.near)
    return (
        f"Near a limit of Azure ({WARN_FROM:.0%} or more, as this stack alone counts): {uses}. "
        f"`idstack forecast --stack {stack}` has the sources and advice."
    )


def _line(use: Use) -> dict[str, Text]:
    style = "red" if use.share > 1 else "yellow" if use.share >= WARN_FROM else ""
    return {
        "limit": Text(use.limit.name),
        "at": Text(use.holder),
        "used": Text(f"{_number(use.used)} of {_number(use.limit.most)}", style),
        "share": Text(f"{use.share:.1%}", style),
        "more clusters": Text("any" if use.more is None else f"{use.more:,}"),
        "source": Text(use.limit.source.title),
    }


def _clusters(use: Use) -> str:
    return "1 more cluster" if use.more == 1 else f"{use.more:,} more clusters"


def _number(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() or number >= 100 else f"{number:,.1f}"
