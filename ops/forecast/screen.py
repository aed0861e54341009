"""The forecast on the screen: a table, the limit that is met first, advice, and the warning of a preview."""

from __future__ import annotations

from typing import Final

from rich.table import Table
from rich.text import Text

from ops.forecast.forecast import WARN_FROM, Forecast, LimitUsage
from ops.forecast.forecast import forecast as of_stacks
from ops.forecast.stack import read
from ops.outputs.tables import fitted
from ops.stack.errors import CommandError

# The table on narrow screens.
_STACKED: Final = ((("limit", "at", "source"), ("used", "share", "more clusters")),)


def table(forecast: Forecast, width: int) -> Table:
    """A line for each used limit, for `width` columns."""
    return fitted([_line(usage) for usage in forecast.usages], _STACKED, width)


def summary(forecast: Forecast) -> str:
    """The limit that is met first, and the advice; each on a line."""
    first = forecast.first
    if first is None:
        lines = ["No limit is met as clusters are added: the stacks have no hosted cluster, whose share would grow."]
    else:
        lines = [f"Met first: {first.limit.name}, after {_clusters(first)} ({first.holder})."]
    lines += [
        f"For {usage.limit.condition}: {usage.limit.name}, after {_clusters(usage)}." for usage in forecast.conditional
    ]
    words = {"subscriptions": "Subscriptions", "vaults": "Vaults", "pollInterval": "Poll interval"}
    lines += [f"{words[key]}: {text}." for key, text in forecast.advice().items()]
    return "\n".join(lines)


def near_limits(stack: str) -> str | None:
    """The warning if the stack alone is near a limit, None otherwise.

    A stack file that cannot be read here (an encrypted value, a key that only `--config` gives) is no problem: the
    engine has validated it.
    """
    try:
        return warning(of_stacks(read([stack])), stack)
    except CommandError:
        return None


def warning(forecast: Forecast, stack: str) -> str | None:
    """One paragraph if a limit is near, for the end of a preview; None otherwise."""
    if not forecast.near:
        return None
    usages = "; ".join(
        f"{usage.limit.name}: {_number(usage.used)} of {_number(usage.limit.maximum)}" for usage in forecast.near
    )
    return (
        f"Near a limit of Azure ({WARN_FROM:.0%} or more, as this stack alone counts): {usages}. "
        f"`idstack forecast --stack {stack}` has the sources and advice."
    )


def _line(usage: LimitUsage) -> dict[str, Text]:
    style = "red" if usage.share > 1 else "yellow" if usage.share >= WARN_FROM else ""
    return {
        "limit": Text(usage.limit.name),
        "at": Text(usage.holder),
        "used": Text(f"{_number(usage.used)} of {_number(usage.limit.maximum)}", style),
        "share": Text(f"{usage.share:.1%}", style),
        "more clusters": Text("any" if usage.more is None else f"{usage.more:,}"),
        "source": Text(usage.limit.source.title),
    }


def _clusters(usage: LimitUsage) -> str:
    return "1 more cluster" if usage.more == 1 else f"{usage.more:,} more clusters"


def _number(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() or number >= 100 else f"{number:,.1f}"
