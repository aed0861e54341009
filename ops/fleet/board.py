"""Shows a rollout: on a terminal a table that changes in place, elsewhere a line for each thing that happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ops.fleet.rollout import Progress, RolloutOutcome

_STYLES: Final = {
    RolloutOutcome.UP: "green",
    RolloutOutcome.UNCHANGED: "green",
    RolloutOutcome.RUNNING: "cyan",
    RolloutOutcome.FAILED: "bold red",
    RolloutOutcome.INTERRUPTED: "yellow",
}
# A row of its own has what runs, and what needs a person; of the others a wave's line has the number.
_ROWS: Final = frozenset({RolloutOutcome.RUNNING, RolloutOutcome.FAILED, RolloutOutcome.INTERRUPTED})


class Board:
    """The state of a rollout on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._known: dict[str, RolloutOutcome] = {}
        self._note = ""

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within the block a terminal shows the table."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=4) as self._live:
            yield

    def show(self, progress: Sequence[Progress], note: str) -> None:
        """This is how far it is; `note` says what is waited for, empty for nothing in particular."""
        if self._live is not None:
            self._live.update(Group(table(progress), Text(note)))
            return
        if note and note != self._note:
            self._console.print(note, markup=False)
        self._note = note
        for each in progress:
            if each.outcome is not self._known.get(each.stack.name, RolloutOutcome.WAITING):
                self._console.print(line(each), markup=False)
            self._known[each.stack.name] = each.outcome


def line(each: Progress) -> str:
    """What became of a stack: `hc1-prod (wave 1): up in 41 s`."""
    text = f"{each.stack.name} ({each.wave}): {each.outcome}"
    if each.outcome in (RolloutOutcome.UP, RolloutOutcome.FAILED, RolloutOutcome.INTERRUPTED):
        text += f" in {each.seconds:.0f} s"
    return f"{text}: {each.line}" if each.outcome is RolloutOutcome.FAILED and each.line else text


def table(progress: Sequence[Progress]) -> Table:
    """The table: a line for each wave with its numbers, below it its stacks that run or have failed."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("wave", "stack", "state", "time"):
        made.add_column(heading, justify="right" if heading == "time" else "left", no_wrap=True)
    made.add_column("newest line", no_wrap=True, overflow="ellipsis", ratio=1)
    for wave in dict.fromkeys(each.wave for each in progress):
        own = [each for each in progress if each.wave == wave]
        made.add_row(Text(wave), Text(""), Text(summary(own)), "", "")
        for each in own:
            if each.outcome in _ROWS:
                state = Text(each.outcome, _STYLES[each.outcome])
                made.add_row("", Text(each.stack.name), state, f"{each.seconds:.0f} s", Text(each.line))
    return made


def summary(progress: Sequence[Progress]) -> str:
    """Numbers of the stacks by their state: `3 up, 5 waiting`."""
    numbers = Counter(each.outcome for each in progress)
    return ", ".join(f"{numbers[each]} {each}" for each in RolloutOutcome if numbers[each])
